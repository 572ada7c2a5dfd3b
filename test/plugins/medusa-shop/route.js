const { readFileSync } = require('node:fs');

const { quittance } = JSON.parse(readFileSync('settings.json', 'utf8'));
const { sweep } = require('quittance-medusa/sweep');

/** Runs the shop's job, which otherwise runs on a schedule. */
exports.POST = async (request, response) => {
  await sweep(request.scope, quittance);
  response.json({});
};
