#!/usr/bin/env node
import { existsSync } from 'node:fs';
import * as module from 'node:module';

// Only syntax that old releases of Node can read stands here, so that they reach this message.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `error: Quittance needs Node.js 20.19 or newer, and this is ${process.versions.node}: install a newer one`,
  );
  process.exit(1);
}

async function run() {
  const built = new URL('../dist/cli/main.js', import.meta.url);
  const source = new URL('../src/cli/main.ts', import.meta.url);
  const isBuilt = existsSync(built);
  if (!isBuilt) {
    const { register } = await import('tsx/esm/api');
    // The tsconfig.json of the working directory belongs to somebody else.
    register({ tsconfig: false });
    module.register('./package-hooks.js', import.meta.url);
  }
  const { main } = await import((isBuilt ? built : source).href);
  process.exitCode = await main(process.argv.slice(2));
}

run();
