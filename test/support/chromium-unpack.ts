/**
 * Unpacks Chromium and fonts into this process's temporary directory, which is then renamed to the directory given as the argument. If the
 * system lacks libraries (libnss3, libnspr4), unpacks the package's own too.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompressSync } from 'node:zlib';
import chromium from '@sparticuz/chromium';
import decompress from 'woff2-encoder/decompress';

const packageRoot = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..', '..');
const executable = await chromium.executablePath();
await promisify(execFile)(executable, ['--version']).catch(unpackLibraries);

const fonts = join(dirname(executable), 'fonts');
// Chromium's own font has neither script, and characters without a font are drawn as nothing.
await addFonts(
  import.meta.resolve('@fontsource-variable/noto-sans-arabic/package.json'),
  /-arabic-wght-normal\.woff2$/,
);
await addFonts(import.meta.resolve('@fontsource-variable/noto-sans-sc/package.json'), /-sc-\d+-wght-normal\.woff2$/);

// The package's own configuration looks for fonts in /tmp/fonts. With only these fonts, pages look the same on every machine.
const [directory = ''] = process.argv.slice(2);
const fontsConfig = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${directory}/fonts</dir>
  <cachedir>${directory}/fonts-cache</cachedir>
</fontconfig>
`;
await writeFile(join(fonts, 'fonts.conf'), fontsConfig);

async function unpackLibraries(): Promise<void> {
  const folder = join(dirname(executable), 'al2023');
  await mkdir(folder);
  const input = brotliDecompressSync(await readFile(join(packageRoot, 'bin', 'al2023.tar.br')));
  execFileSync('tar', ['-x', '-C', folder], { input });
}

/** System fonts can't be compressed like web fonts. Together they are 98 files of 8 MB, written in 0.3 s. */
async function addFonts(manifest: string, files: RegExp): Promise<void> {
  const folder = join(dirname(fileURLToPath(manifest)), 'files');
  for (const name of (await readdir(folder)).filter((file) => files.test(file))) {
    await writeFile(join(fonts, name.replace(/woff2$/, 'ttf')), await decompress(await readFile(join(folder, name))));
  }
}
