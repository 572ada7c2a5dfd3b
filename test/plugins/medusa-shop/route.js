const { readFileSync } = require('node:fs');

const { plugin, quittance } = JSON.parse(readFileSync('settings.json', 'utf8'));
const { sweep } = require(plugin.replace(/provider\.js$/, 'sweep.js'));

/** Runs the job of the shop, which else runs by its schedule. */
exports.POST = async (request, response) => {
  await sweep(request.scope, quittance);
  response.json({});
};
