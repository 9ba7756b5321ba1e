/**
 * Puts what is asked at the same time into one question. What comes while a question is under way waits for the next,
 * which goes as soon as that is answered; nobody waits for a timer. When a question fails, all who are in it fail.
 *
 * @param answerAll answers each, in their order
 * @param most in one question
 */
export function gather<Asked, Answer>(
  answerAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>,
  most: number,
): (asked: Asked) => Promise<Answer> {
  const waiting: { asked: Asked; resolve(answer: Answer): void; reject(error: unknown): void }[] = [];
  let busy = false;

  const work = async (): Promise<void> => {
    // Let everything that comes in this turn of the event loop join.
    await new Promise(setImmediate);
    while (waiting.length > 0) {
      const group = waiting.splice(0, most);
      try {
        const answers = await answerAll(group.map(({ asked }) => asked));
        if (answers.length !== group.length) throw new Error('Internal error: not one answer for each question.');
        group.forEach(({ resolve }, at) => {
          resolve(answers[at] as Answer);
        });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    busy = false;
  };

  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      if (busy) return;
      busy = true;
      void work();
    });
}
