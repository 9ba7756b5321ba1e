/** From so many in a batch on, the next one waits. A few callers would only wait for each other. */
const UNDER_LOAD = 4;

/** After a batch of `size`: under load, waits for so many turns of the event loop, in which more can join the next one. */
export async function letMoreJoin(size: number, turns: number): Promise<void> {
  if (size < UNDER_LOAD) return;
  for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
}

/**
 * A batch loader: puts concurrent requests into one batch. Requests that arrive while a batch is running wait for the next one,
 * which starts as soon as that is done, without a timer, and under load a turn of the event loop later: what was just answered goes on
 * first, and its clients' next requests join. When a batch fails, all of its requests fail.
 *
 * @param answerAll returns the results in the order of the requests
 * @param most requests in one batch
 */
export function batchLoader<Asked, Answer>(
  answerAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>,
  most: number,
): (asked: Asked) => Promise<Answer> {
  const waiting: { asked: Asked; resolve(answer: Answer): void; reject(error: unknown): void }[] = [];
  let busy = false;

  const work = async (): Promise<void> => {
    // Let all requests of this turn of the event loop join.
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
      await letMoreJoin(group.length, 1);
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
