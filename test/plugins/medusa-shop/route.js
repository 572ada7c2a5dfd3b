const { readFileSync } = require('node:fs');

const { quittance } = JSON.parse(readFileSync('settings.json', 'utf8'));
const { sweep } = require('quittance-medusa/sweep');

/** Runs the shop's job, which otherwise runs on a schedule. Or changes the amount of a payment session, as code of the shop can. */
exports.POST = async (request, response) => {
  const { session } = request.body ?? {};
  if (session !== undefined) {
    response.json(await request.scope.resolve('payment').updatePaymentSession(session));
    return;
  }
  await sweep(request.scope, quittance);
  response.json({});
};
