#!/usr/bin/env node
import { existsSync } from 'node:fs';

// Only syntax that old releases of Node can read stands here, so that they reach this message.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `error: Quittance needs Node.js 20.19 or newer, and this is ${process.versions.node}: install a newer one`,
  );
  process.exit(1);
}

async function run() {
  // A package is its build and has no sources. What a checkout runs is never older than its sources.
  if (existsSync(new URL('../src/', import.meta.url))) await build();
  const args = process.argv.slice(2);
  // To load every command takes as long as Node takes to start.
  if (args.length === 1 && /^(-V|--version)$/.test(args[0]))
    return console.log((await load('core/runtime/package')).readVersion());
  process.exitCode = await (await load('cli/main')).main(args);
}

function load(name) {
  return import(new URL(`../dist/${name}.js`, import.meta.url).href);
}

async function build() {
  const { BuildError, buildDist } = await import('../build/build-dist.js');
  try {
    await buildDist();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`error: ${error.message}`);
    process.exit(1);
  }
}

run();
