import { say, type Text } from '../../domain/message.ts';
import type { Diagnosis } from '../../webhooks/diagnosis.ts';

/** Diagnoses an attempt that got no status, or a status that was not what counts. `error` is as attempts record it: `tls: no secure connection (CERT_HAS_EXPIRED)`. */
export function diagnoseConnection(error: string): Diagnosis {
  const kind = error.split(':', 1)[0] ?? '';
  const code = /\(([A-Za-z0-9_]{1,60})\)$/.exec(error)?.[1] ?? '';
  const found = CONNECTIONS.find((each) => each.codes?.test(code) || each.kinds?.includes(kind));
  const words = error.slice(kind.length + 1).trim();
  if (found === undefined) return { ...UNKNOWN, problem: `the attempt failed: ${words || error}` };
  const problem = found.code === 'target-refused' && words !== '' ? words : found.problem;
  // Errors of OpenSSL and the resolver follow from the receiver's answers; other errors may have their reason on the way.
  return { code: found.code, certainty: found.isProven ? 'proven' : 'likely', problem, fix: found.fix };
}

type KnownConnection = {
  code: string;
  codes?: RegExp;
  kinds?: readonly string[];
  isProven?: boolean;
  problem: string;
  fix: Text;
};

const UNKNOWN: Diagnosis = {
  code: 'network',
  certainty: 'likely',
  problem: '',
  fix: 'try the URL with curl from the machine that Quittance runs on',
};

/** Codes are more exact than kinds, so those that have them come first. */
const CONNECTIONS: readonly KnownConnection[] = [
  {
    ...{ code: 'certificate-expired', codes: /^CERT_HAS_EXPIRED$/, isProven: true },
    problem: 'the TLS certificate of the endpoint has expired',
    fix: 'renew the certificate and reload the web server; renewed files are of no use before',
  },
  {
    ...{ code: 'certificate-not-yet-valid', codes: /^CERT_NOT_YET_VALID$/, isProven: true },
    problem: 'the TLS certificate of the endpoint is not valid yet',
    fix: 'check the clock of this machine, and the first day of the certificate',
  },
  {
    ...{
      code: 'certificate-self-signed',
      codes: /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/,
      isProven: true,
    },
    problem:
      'the TLS certificate of the endpoint is signed by itself or by an authority of your own, which nobody else trusts',
    fix: "install a certificate of a public authority (Let's Encrypt and others issue them for nothing)",
  },
  {
    ...{ code: 'certificate-wrong-name', codes: /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, isProven: true },
    problem: 'the TLS certificate of the endpoint is for another host name',
    fix: 'install a certificate for the host name of the URL, or register the URL with the name that the certificate has; often the web server answers with its default certificate, because no site has this name',
  },
  {
    ...{
      code: 'certificate-chain',
      codes: /^UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)$/,
      isProven: true,
    },
    problem:
      'the endpoint does not send the intermediate certificates, so its certificate cannot be followed to a known authority (browsers hide this, for they remember them)',
    fix: 'configure the web server with the full chain (fullchain.pem instead of cert.pem)',
  },
  {
    ...{
      code: 'not-tls',
      codes: /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST)$/,
    },
    problem: 'what listens at the port does not speak TLS as it should; often it speaks plain HTTP',
    fix: 'register the URL with the port where https:// is served',
  },
  {
    ...{ code: 'connect-timeout', codes: /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/ },
    problem: 'no connection could be opened in time: something drops the packets',
    fix: 'open the port in the firewall (and the security group) for the address of this machine, and check that the name leads to the right address',
  },
  {
    ...{ code: 'tls', kinds: ['tls'] },
    problem: 'no secure connection could be made',
    fix: 'check the certificate, its chain and the versions of TLS that the web server allows (1.2 or 1.3)',
  },
  {
    ...{ code: 'dns', kinds: ['dns'], isProven: true },
    problem: 'the host name of the URL does not resolve to an address',
    fix: 'correct the host name, or publish its A or AAAA record; a new record may take minutes to be seen',
  },
  {
    ...{ code: 'refused', kinds: ['connection_refused'], isProven: true },
    problem: 'nothing listens at the address and port of the URL, or a firewall refuses the connection',
    fix: 'start the application, and check the port in the URL and that it listens on more than its own loopback interface',
  },
  {
    ...{ code: 'answer-timeout', kinds: ['timeout'] },
    problem: 'the endpoint took the connection but gave no answer in time',
    fix: 'let the application store the event, answer 200 at once, and work on it afterwards',
  },
  {
    ...{ code: 'not-acknowledged', kinds: ['not_acknowledged'], isProven: true },
    problem: 'the shop answered, and not with ok or success, which is how it says that it has taken a payment',
    fix: 'look at the first bytes of the answer: often its plugin has another secret than the adapter, does not know the order, or prints something before the word',
  },
  {
    ...{ code: 'web-page', kinds: ['web_page'] },
    problem:
      'the endpoint answered with a web page, such as one for logging in or a challenge of a firewall: your receiver probably never saw the webhook',
    fix: 'exempt the route from login and from challenges of the proxy or firewall, or correct the URL. A receiver that does answer with a page should answer 204 without a body',
  },
  {
    ...{ code: 'connection-lost', kinds: ['connection_lost'] },
    problem: 'the endpoint closed the connection before it answered',
    fix: 'look whether the application crashed or restarted then, and whether a proxy or firewall cuts connections',
  },
  {
    ...{ code: 'unreachable', kinds: ['unreachable'] },
    problem: 'there is no route to the address of the endpoint',
    fix: 'check that the name leads to the right address and that this machine may reach it',
  },
  {
    ...{ code: 'target-refused', kinds: ['target_refused', 'invalid_url'], isProven: true },
    problem: 'webhooks are not sent to this target',
    fix: 'register a URL with https:// and a public address. Projects of test networks may also use this machine itself where QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow is set',
  },
  {
    ...{ code: 'invalid-answer', kinds: ['invalid_answer'] },
    problem: 'what came back is not valid HTTP',
    fix: 'check that the port in the URL is that of a web server, and what the proxy before the application adds to answers',
  },
  {
    ...{ code: 'unsigned', kinds: ['unsigned'], isProven: true },
    problem: 'the webhook could not be signed, because no secret of the endpoint can be opened',
    fix: say`set QUITTANCE_MASTER_KEY as the service has it; if the key is lost for ever, give the endpoint a new secret with "${{ command: 'webhook rotate', input: { isKeyLost: true } }}"`,
  },
];
