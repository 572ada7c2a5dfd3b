import { AppError } from '../../domain/errors.ts';
import { optionOf } from './option-text.ts';

/**
 * Runs what reads the input of a use case, and names the options where it names fields: `name` is `--name`, `webhookUrl` is
 * `--webhook-url`. `names`: where the option is called otherwise. A message that begins with
 * an option stays as it is.
 */
export function asOptions<Input>(read: () => Input, names: Readonly<Record<string, string>> = {}): Input {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AppError) || error.problems.length === 0) throw error;
    const problems = error.problems.map((problem) => {
      const { subject, message } = problem;
      if (message.startsWith('--')) return problem;
      const option = names[subject] ?? optionOf(subject);
      return { subject: option, message: `${option}${message.startsWith(':') ? '' : ' '}${message}` };
    });
    throw new AppError(error.code, error.message, { problems });
  }
}
