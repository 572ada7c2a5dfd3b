import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** How to run a program of the reference, by its language there. */
const RUNS: Readonly<Record<string, { file: string; command: string }>> = {
  curl: { file: 'example.sh', command: 'sh' },
  js: { file: 'example.mjs', command: process.execPath },
  python: { file: 'example.py', command: 'python3' },
  php: { file: 'example.php', command: 'php' },
  go: { file: 'example.go', command: 'go run' },
  java: { file: 'Example.java', command: 'java' },
};

/** Whether the machine has the tools for a language. */
export function canRun(language: string): Promise<boolean> {
  const [program = ''] = language === 'curl' ? ['curl'] : (RUNS[language]?.command.split(' ') ?? []);
  return promisify(execFile)(program, [language === 'go' ? 'version' : '--version']).then(
    () => true,
    () => false,
  );
}

/** Runs a program like a developer who copied it from the reference, and returns its output. */
export async function runExample(language: string, code: string, apiKey: string): Promise<string> {
  const { file, command } = RUNS[language] ?? { file: '', command: '' };
  const folder = await mkdtemp(join(tmpdir(), 'example-'));
  try {
    await writeFile(join(folder, file), code);
    const [program = '', ...parameters] = command.split(' ');
    const env = { ...process.env, QUITTANCE_API_KEY: apiKey };
    const { stdout } = await promisify(execFile)(program, [...parameters, file], { cwd: folder, env });
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
