import { contactProblem, readLink } from '../../domain/brand.ts';
import { parseColour } from '../../domain/colour.ts';
import { keyMode, type Network } from '../../domain/network.ts';
import type { Logo } from '../../store/logos.ts';
import type { ProjectSettings } from '../../store/projects.ts';
import type { Problem } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { secretProblem } from '../secret-problem.ts';
import { spotSecret, spotSecretInNote } from '../spot-secret.ts';
import { readLogoFile } from './read-logo-file.ts';

/** `false` is what `--no-…` gives. */
export type BrandOptions = {
  support?: string | false;
  returnUrl?: string | false;
  accent?: string | false;
  logo?: string | false;
};

/** What is to be set. The logo is not stored yet; `null` takes the one that there is away. */
export type WantedBrand = Partial<Pick<ProjectSettings, 'supportContact' | 'returnUrl' | 'accent'>> & {
  logo?: Logo | null;
};

/** The options that were given. What is wrong is added to `problems`, so that all of a command is reported at once. */
export async function readBrandOptions(options: BrandOptions, problems: Problem[]): Promise<WantedBrand> {
  const { support, returnUrl, accent, logo } = options;
  return {
    ...(support === undefined ? {} : { supportContact: support === false ? null : readSupport(support, problems) }),
    ...(returnUrl === undefined ? {} : { returnUrl: returnUrl === false ? null : readReturnUrl(returnUrl, problems) }),
    ...(accent === undefined ? {} : { accent: accent === false ? null : readAccent(accent, problems) }),
    ...(logo === undefined ? {} : { logo: logo === false ? null : await readLogoFile(logo, problems) }),
  };
}

/** What is wrong with a return URL for a project of this network, which is known only later. */
export function returnUrlProblem({ returnUrl }: WantedBrand, network: Network): Problem | null {
  if (typeof returnUrl !== 'string' || !returnUrl.startsWith('http:') || keyMode(network) === 'test') return null;
  const message =
    '--return-url is for this machine only, and payers of a mainnet project are elsewhere: write https://';
  return { subject: '--return-url', message };
}

function readSupport(text: string, problems: Problem[]): string {
  const contact = text.trim();
  const secret = spotSecretInNote(contact);
  const problem = contactProblem(contact);
  if (secret !== null) problems.push(secretProblem('--support', secret));
  else if (problem !== null) problems.push({ subject: '--support', message: `--support ${problem}` });
  return contact;
}

function readReturnUrl(text: string, problems: Problem[]): string {
  const secret = spotSecret(text);
  const read = readLink(text);
  if (secret !== null) problems.push(secretProblem('--return-url', secret));
  else if (read.kind === 'refused') problems.push({ subject: '--return-url', message: `--return-url ${read.reason}` });
  return read.kind === 'ok' ? read.url : '';
}

function readAccent(text: string, problems: Problem[]): string {
  const colour = parseColour(text);
  if (colour === null) {
    const message = `--accent is ${clip(text)}: it takes 3 or 6 hexadecimal digits, as in 0a6549 or '#0a6549' (with quotes, for a shell may drop what follows a #)`;
    problems.push({ subject: '--accent', message });
  }
  return colour ?? '';
}
