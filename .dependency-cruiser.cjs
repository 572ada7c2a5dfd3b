/**
 * The import rules of the house. Each folder lists what it may import; everything else is a violation.
 * test/rules/import-rules.test.ts plants violations and expects this file to report them.
 */
const mayImport = {
  'packages/tron': [],
  'packages/devnet': ['packages/tron'],
  'core/runtime': [],
  'core/domain': ['packages/tron'],
  'core/store': ['core/domain', 'packages/tron'],
  'core/payments': ['core/store', 'core/domain', 'packages/tron'],
  'core/chain': ['core/payments', 'core/store', 'core/domain', 'packages/tron'],
  'core/webhooks': ['core/store', 'core/domain'],
  'faces/web': ['core/domain'],
  'faces/notify': ['core/webhooks', 'core/store', 'core/domain'],
  'faces/operator': [
    ...['core/payments', 'core/chain', 'core/webhooks', 'faces/notify', 'core/store', 'core/domain', 'packages/tron'],
  ],
  // Of what operators do, a key does what concerns the endpoints of its project.
  'faces/api': [
    ...['faces/web', 'core/payments', 'core/store', 'core/domain'],
    'faces/operator/(operation|actor|command-words|subjects/webhook(s|-sending)|input/problems)',
  ],
  'faces/checkout': ['faces/web', 'core/payments', 'core/store', 'core/domain'],
  // What other systems call back goes by our webhooks, whose rules for targets and secrets hold here too.
  'faces/adapters': ['faces/web', 'core/webhooks', 'core/payments', 'core/store', 'core/domain'],
  'faces/admin': ['faces/web', 'faces/operator', 'core/domain'],
  'faces/console': ['faces/web', 'faces/operator', 'core/domain'],
  server: ['faces', 'core', 'packages/tron'],
  developer: [
    ...['server', 'faces/operator', 'core/webhooks', 'core/store', 'core/domain'],
    // The sandbox makes the mistakes of payers that the diagnosis names.
    ...['packages/devnet', 'packages/tron'],
  ],
};

/** `packages/tron` is beside src/, and everything else is in it. */
const placeOf = (folder) => (folder.startsWith('packages/') ? `${folder}/src` : `src/${folder}`);

/** Everything in src/ may use the runtime, but what is pure. */
const folderRules = Object.entries(mayImport).map(([folder, others]) => {
  const allowed = [folder, ...(folder.startsWith('packages/') ? [] : ['core/runtime']), ...others];
  return {
    name: `${folder.replace('/', '-')}-imports`,
    comment: `${placeOf(folder)} may import only: ${allowed.join(', ')}`,
    severity: 'error',
    from: { path: `^${placeOf(folder)}/`, pathNot: '\\.test\\.ts$' },
    to: { path: '^(src|packages)/', pathNot: `^(${allowed.map(placeOf).join('|')})(/|\\.ts$)` },
  };
});

/** The database, the nodes and a watcher are each opened in one place, and what payers are told is taken from one. */
const opening = ['terminal/(with-database|with-nodes|follow-scratch)'];

/** What computes, and knows neither the machine nor the time. */
const PURE = '^(packages/tron/src|src/core/domain)/';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...folderRules,
    {
      name: 'core-imports-no-face',
      comment: 'what decides and records a payment knows nobody who asks for it',
      severity: 'error',
      from: { path: '^src/core/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/(?!core/)' },
    },
    {
      name: 'faces-are-composed',
      comment: 'the server composes the faces; none of them knows it, the commands or the tools of developers',
      severity: 'error',
      from: { path: '^src/faces/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/(server|developer|cli)/' },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'pure-core-has-no-node',
      comment: 'packages/tron and src/core/domain do no I/O: no Node built-ins, and no packages but @noble and @scure',
      severity: 'error',
      from: { path: PURE, pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'pure-core-packages',
      severity: 'error',
      from: { path: PURE, pathNot: '\\.test\\.ts$' },
      to: { path: 'node_modules', pathNot: 'node_modules/(@noble|@scure)/' },
    },
    {
      name: 'pure-core-has-no-runtime',
      comment: 'the clock, the log and the metrics are arguments, never imports, in the pure core',
      severity: 'error',
      from: { path: PURE, pathNot: '\\.test\\.ts$' },
      to: { path: '^src/core/runtime/' },
    },
    {
      name: 'cli-is-a-face',
      comment:
        'a command parses, calls a use case of src/faces/operator and prints; what lies below is not its business',
      severity: 'error',
      from: { path: '^src/cli/', pathNot: `^src/cli/(${opening.join('|')})|\\.test\\.ts$` },
      to: {
        path: '^src/(core/(store|payments|chain|webhooks)|faces/(notify|web|api|checkout|admin|console)|server/service)(/|\\.ts$)',
      },
    },
    {
      name: 'commands-are-apart',
      comment: 'the folders of src/cli are the subjects of commands: they share src/cli/terminal and nothing else',
      severity: 'error',
      from: { path: '^src/cli/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/cli/[^/]+/', pathNot: '^src/cli/($1|terminal)/' },
    },
    {
      name: 'service-runs-without-commands',
      comment: 'nothing that a running service loads leads to commands, to tools of developers or to the local network',
      severity: 'error',
      from: { path: '^src/server/(main|service)\\.ts$' },
      to: { path: '^(src/(cli|developer)|packages/devnet)/', reachable: true },
    },
    {
      name: 'only-commands-import-developer',
      comment: 'the commands of developers, the start of the sandbox, and where commands find the network of a sandbox',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(developer/|cli/(developer/|start\\.ts|terminal/select-network\\.ts))|\\.test\\.ts$',
      },
      to: { path: '^src/developer/' },
    },
    {
      name: 'only-developer-imports-devnet',
      comment: 'a network with keys that everybody knows is for the sandbox',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/developer/|\\.test\\.ts$' },
      to: { path: '^packages/devnet/src/' },
    },
    {
      name: 'only-store-speaks-sql',
      comment: 'pg is imported in src/core/store only',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/core/store/|\\.test\\.ts$' },
      to: { path: 'node_modules/(pg|@types/pg)/' },
    },
    {
      name: 'sdk-imports-nothing',
      comment:
        'the SDK is a package of its own without dependencies; for Node 18 it asks for node:crypto, where there is none in the globals',
      severity: 'error',
      from: { path: '^packages/sdk/' },
      to: { pathNot: '^(packages/sdk/|(node:)?crypto$)' },
    },
    {
      name: 'only-tests-import-sdk',
      comment: 'the SDK is for integrators; the server has its own code',
      severity: 'error',
      from: { path: '^(src|bin|packages/(tron|devnet))/', pathNot: '\\.test\\.ts$' },
      to: { path: '^packages/sdk/' },
    },
    {
      name: 'source-imports-no-tests',
      severity: 'error',
      from: { path: '^(src|packages)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(test|bench)/|\\.test\\.ts$' },
    },
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      // A shop is installed where its test runs.
      from: { pathNot: '^test/plugins/(vendure-shop\\.cjs|medusa-shop/)' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies-in-source',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: 'node_modules/@types/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@quittance/source', 'import', 'require', 'node', 'default', 'types'],
    },
  },
};
