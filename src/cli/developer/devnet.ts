import { type DevnetInput, readDevnetSettings, runDevnet } from '../../developer/devnet/run-devnet.ts';
import { type DevnetPaymentInput, payOnDevnet } from '../../developer/sandbox/pay-invoice.ts';
import { formatFields } from '../../faces/operator/command-words.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { type Result, stopSignal, type Terminal } from '../terminal/terminal.ts';

/** Runs the local TRON network until a signal arrives. */
export async function printDevnet(terminal: Terminal, options: DevnetInput): Promise<void> {
  const config = loadConfig(terminal);
  const settings = readDevnetSettings(options, config);
  const signal = stopSignal(EXIT.failed);
  await runDevnet(settings, signal, (data) => {
    const { url, solidityUrl, grpcUrl, grpcSolidityUrl, usdtContract, payer } = data;
    terminal.print({
      data,
      text: formatFields([
        ['gRPC', `${grpcUrl}, irreversible ${grpcSolidityUrl}`],
        ['HTTP', `${url}, irreversible ${solidityUrl}`],
        ['USDT', usdtContract],
        ['fake USDT', data.fakeUsdtContract],
        ['multisend', data.multisendContract],
        ['payer', payer.address],
        ['payer key', payer.privateKey],
        ['chain', data.dataDir ?? 'in memory'],
      ]),
      next: `to use this network: QUITTANCE_DEVNET_NODES='${grpcUrl}#solidity=${grpcSolidityUrl}' QUITTANCE_DEVNET_USDT=${usdtContract} ${startCommand()}`,
    });
  });
}

/** In a checkout, `quittance` isn't on the path. */
function startCommand(): string {
  return process.env['npm_lifecycle_event'] === undefined ? 'quittance start' : 'npm start';
}

export async function printDevnetPayment(input: DevnetPaymentInput): Promise<Result> {
  const data = await payOnDevnet(input);
  const sent = data.sent.map(({ txId, to, amount }) => `sent ${amount} to ${to} in transaction ${txId}`);
  return { data, text: [...sent, data.outcome].join('\n') };
}
