import { startCluster } from './cluster.ts';
import { findPrograms } from './requirements.ts';

/** `npm run ha`: a replicated PostgreSQL on this machine to try things out with, until Ctrl-C. Its data is deleted at the end. */
const programs = await findPrograms();
if (typeof programs === 'string') {
  console.error(programs);
  process.exit(1);
}
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve());
});
console.error('starting etcd, three PostgreSQL under Patroni, and HAProxy …');
const cluster = await startCluster(programs);
const lines = cluster.members.map(
  ({ name, port, restUrl }) => `${name}: PostgreSQL on 127.0.0.1:${port}, Patroni ${restUrl}`,
);
const urls = [
  `DATABASE_URL=${cluster.databaseUrl}`,
  `DATABASE_OWNER_URL=${cluster.databaseOwnerUrl}  (for "quittance migrate", first)`,
];
console.log([...urls, ...lines, `logs in ${cluster.directory}`].join('\n'));
await stopped;
await cluster.stop();
