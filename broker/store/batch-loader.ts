/** From this batch size on, the next batch is delayed. Fewer callers would only wait for each other. */
const UNDER_LOAD = 4;

/** Under load, after a batch of `size`, waits for `turns` turns of the event loop, so that more requests join the next batch. */
export async function letMoreJoin(size: number, turns: number): Promise<void> {
  if (size < UNDER_LOAD) return;
  for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
}

/**
 * A batch loader: puts concurrent requests into one batch. Requests that arrive while a batch is running wait for the next one, which
 * starts as soon as that is done, without a timer; under load a turn of the event loop later, so that answered requests continue first and
 * their clients' next requests join. When a batch fails, all of its requests fail.
 *
 * @param answerAll returns the results in the order of the requests
 * @param most maximum requests in one batch
 */
export function batchLoader<Asked, Answer>(
  answerAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>,
  most: number,
): (asked: Asked) => Promise<Answer> {
  const waiting: { asked: Asked; resolve(answer: Answer): void; reject(error: unknown): void }[] = [];
  let busy = false;

  const work = async (): Promise<void> => {
    // Let all requests of this turn of the event loop join the batch.
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
