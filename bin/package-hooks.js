import { readFile } from 'node:fs/promises';

/**
 * Module hooks (nodejs.org/api/module.html#customization-hooks) that lead the ES modules inside packages past tsx, which
 * would look for TypeScript in each. TypeBox has 700 of them: this saves 0.3 s of every start.
 */
export async function resolve(specifier, context, next) {
  const isInside = /^\.\.?\/.*\.mjs$/.test(specifier) && context.parentURL?.includes('/node_modules/');
  if (!isInside) return next(specifier, context);
  return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true };
}

export async function load(url, context, next) {
  if (!url.endsWith('.mjs') || !url.includes('/node_modules/')) return next(url, context);
  return { format: 'module', source: await readFile(new URL(url)), shortCircuit: true };
}
