/**
 * The import rules of the house. Each folder of src/ lists what it may import; everything else is a violation.
 * test/rules/import-rules.test.ts plants violations and expects this file to report them.
 */
const mayImport = {
  tron: [],
  domain: ['tron'],
  store: ['domain', 'tron'],
  payments: ['store', 'domain', 'tron'],
  chain: ['payments', 'store', 'domain', 'tron'],
  webhooks: ['store', 'domain'],
  notify: ['webhooks', 'store', 'domain'],
  operator: ['payments', 'chain', 'webhooks', 'notify', 'store', 'domain', 'tron'],
  web: ['domain'],
  // Of what operators do, a key does what concerns the endpoints of its project.
  api: [
    ...['web', 'payments', 'store', 'domain'],
    'operator/(operation|actor|command-words|subjects/webhook(s|-sending)|input/problems)',
  ],
  checkout: ['web', 'payments', 'store', 'domain'],
  // What other systems call back goes by our webhooks, whose rules for targets and secrets hold here too.
  adapters: ['web', 'webhooks', 'payments', 'store', 'domain'],
  admin: ['web', 'operator', 'domain'],
  console: ['web', 'operator', 'domain'],
  // It plays the chain for others to judge: of the rules of money only the mistakes of payers that it makes, and what loopback is.
  devnet: ['domain/(loopback|mismatch)', 'tron'],
  developer: ['devnet', 'service', 'operator', 'webhooks', 'store', 'domain', 'tron', 'config'],
  runtime: [],
};

const folderRules = Object.entries(mayImport).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import only: ${['itself', 'runtime', ...allowed].join(', ')}`,
  severity: 'error',
  from: { path: `^src/${folder}/`, pathNot: '\\.test\\.ts$' },
  to: { path: '^src/', pathNot: `^src/(${[folder, 'runtime', ...allowed].join('|')})(/|\\.ts$)` },
}));

/** The database, the nodes and a watcher are each opened in one place, and what payers are told is taken from one. */
const opening = ['terminal/(with-database|with-nodes|follow-scratch|payer-words)'];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...folderRules,
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'pure-core-has-no-node',
      comment: 'src/tron and src/domain do no I/O: no Node built-ins, and no packages but @noble and @scure',
      severity: 'error',
      from: { path: '^src/(tron|domain)/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'pure-core-packages',
      severity: 'error',
      from: { path: '^src/(tron|domain)/', pathNot: '\\.test\\.ts$' },
      to: { path: 'node_modules', pathNot: 'node_modules/(@noble|@scure)/' },
    },
    {
      name: 'pure-core-has-no-runtime',
      comment: 'the clock, the log and the metrics are arguments, never imports, in the pure core',
      severity: 'error',
      from: { path: '^src/(tron|domain)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/runtime/' },
    },
    {
      name: 'cli-is-a-face',
      comment: 'a command parses, calls a use case of src/operator and prints; what lies below is not its business',
      severity: 'error',
      from: { path: '^src/cli/', pathNot: `^src/cli/(${opening.join('|')})|\\.test\\.ts$` },
      to: { path: '^src/(store|payments|chain|webhooks|notify|web|api|checkout|admin|console|service)(/|\\.ts$)' },
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
      from: { path: '^src/(main|service)\\.ts$' },
      to: { path: '^src/(cli|developer|devnet)/', reachable: true },
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
      comment:
        'src/developer, its commands for the list of scenarios, and address/ for the contracts that take no payments',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(devnet|developer|cli/(developer|address))/|\\.test\\.ts$' },
      to: { path: '^src/devnet/' },
    },
    {
      name: 'only-store-speaks-sql',
      comment: 'pg is imported in src/store only',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/store/|\\.test\\.ts$' },
      to: { path: 'node_modules/(pg|@types/pg)/' },
    },
    {
      name: 'sdk-imports-nothing',
      comment:
        'the SDK is a package of its own without dependencies; for Node 18 it asks for node:crypto, where there is none in the globals',
      severity: 'error',
      from: { path: '^sdk/' },
      to: { pathNot: '^(sdk/|(node:)?crypto$)' },
    },
    {
      name: 'only-tests-import-sdk',
      comment: 'the SDK is for integrators; the server has its own code',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^sdk/' },
    },
    {
      name: 'source-imports-no-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.test\\.ts$' },
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
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
