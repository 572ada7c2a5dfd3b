/** Asks for one value. Calls that come while others are under way may be answered together. */
export type Ask<Question, Answer> = (question: Question) => Promise<Answer>;

export type CoalesceOptions<Question, Answer> = {
  /** Answers one question, or several at once, in their order. A rejection is passed on to everybody who asked. */
  answer(questions: Question[]): Promise<Answer[]>;
  /** Calls of `answer` at the same time. Up to as many, a question never waits for another. */
  maxUnderWay: number;
  /** Questions in one call; more wait for the next. */
  maxTogether: number;
};

type PendingQuestion<Question, Answer> = {
  question: Question;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

/**
 * Gathers questions under load, and only then: nobody waits for a timer, and what is asked alone is answered alone. The queue is
 * as long as there are requests in the server, which bounds it.
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
