/** Asks one question. Questions that arrive while others are in progress may be answered together with it. */
export type Ask<Question, Answer> = (question: Question) => Promise<Answer>;

export type CoalesceOptions<Question, Answer> = {
  /** Answers one or more questions in the given order. If it rejects, every caller gets the rejection. */
  answer(questions: Question[]): Promise<Answer[]>;
  /** Maximum number of concurrent calls of `answer`. Below it, a question never waits for another one. */
  maxUnderWay: number;
  /** Maximum number of questions per call. The others wait for the next call. */
  maxTogether: number;
};

type PendingQuestion<Question, Answer> = {
  question: Question;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

/**
 * Batches questions, but only under load: there's no timer, and a question that arrives alone is answered alone. The queue is bounded by
 * the number of requests that the server accepts.
 */
export function coalesce<Question, Answer>(options: CoalesceOptions<Question, Answer>): Ask<Question, Answer> {
  const waiting: PendingQuestion<Question, Answer>[] = [];
  let underWay = 0;
  const start = async () => {
    underWay += 1;
    while (waiting.length > 0) {
      const together = waiting.splice(0, options.maxTogether);
      try {
        const answers = await options.answer(together.map(({ question }) => question));
        if (answers.length !== together.length) {
          throw new Error(`${together.length} questions got ${answers.length} answers`);
        }
        for (const [index, { resolve }] of together.entries()) resolve(answers[index] as Answer);
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    underWay -= 1;
  };
  return (question) =>
    new Promise((resolve, reject) => {
      waiting.push({ question, resolve, reject });
      if (underWay < options.maxUnderWay) void start();
    });
}
