import { bytesField, int64Field, readMessage, repeatedBytesField } from '@quittance/tron/protobuf';
import { type Question, wholeMessage } from './question.ts';

/** In sun per unit of energy. `null` if the node returns no price, or one that no real network has ever had. */
export type EnergyPrice = number | null;

/** The network's votes have always set it between 10 and 420. A wrong price must not deter payers. */
const MAX_SUN = 1000;
const KEY = 'getEnergyFee';
/** About eighty parameters, which take 4 KB. */
const MAX_BYTES = 64 * 1024;

/** Asks for the price of energy, which is one of the chain parameters. */
export const ENERGY_PRICE: Question<EnergyPrice> = {
  maxBytes: MAX_BYTES,
  http: { path: '/wallet/getchainparameters', body: {}, read: readJson },
  grpc: {
    path: '/protocol.Wallet/GetChainParameters',
    request: new Uint8Array(0),
    newSink: wholeMessage(readParameters),
  },
};

/** `{"chainParameter":[{"key":"getMaintenanceTimeInterval","value":21600000},{"key":"getEnergyFee","value":100}, …]}`. */
function readJson(json: unknown): EnergyPrice {
  const { chainParameter: list } = Object(json) as { chainParameter?: unknown };
  const named: { key?: unknown; value?: unknown }[] = Array.isArray(list) ? list.map(Object) : [];
  return inBounds(named.find(({ key }) => key === KEY)?.value);
}

/** ChainParameters: chainParameter=1 {key=1, value=2}. */
function readParameters(bytes: Uint8Array): EnergyPrice {
  for (const parameter of repeatedBytesField(readMessage(bytes) ?? [], 1)) {
    const fields = readMessage(parameter) ?? [];
    if (Buffer.from(bytesField(fields, 1)).toString('latin1') === KEY) return inBounds(Number(int64Field(fields, 2)));
  }
  return null;
}

function inBounds(value: unknown): EnergyPrice {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_SUN ? Number(value) : null;
}
