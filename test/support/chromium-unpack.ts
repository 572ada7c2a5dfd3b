/**
 * Unpacks Chromium and its fonts into the temporary directory of this process, which is going to be renamed to the directory given
 * as the argument, and, where the system lacks libraries
 * that it needs (libnss3, libnspr4), also those that the package brings.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import chromium, { inflate } from '@sparticuz/chromium';

const packageRoot = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..', '..');
const executable = await chromium.executablePath();
await promisify(execFile)(executable, ['--version']).catch(() => inflate(join(packageRoot, 'bin', 'al2023.tar.br')));

// The package's own configuration looks for its fonts in /tmp/fonts. These are the only fonts, so pages look the same on every machine.
const [directory = ''] = process.argv.slice(2);
const fontsConfig = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${directory}/fonts</dir>
  <cachedir>${directory}/fonts-cache</cachedir>
</fontconfig>
`;
await writeFile(join(dirname(executable), 'fonts', 'fonts.conf'), fontsConfig);
