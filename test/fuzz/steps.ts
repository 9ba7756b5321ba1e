/** Sequences of steps on a running broker and on a small model of it, which says what has to come of each. */
import fc from 'fast-check';

/** What a step does to both. It throws where they differ. `when`: whether the model takes it now. */
export type Step<Model extends object, Real> = fc.AsyncCommand<Model, Real>;

export function step<Model extends object, Real>(
  name: string,
  run: (model: Model, real: Real) => Promise<void>,
  when: (model: Readonly<Model>) => boolean = () => true,
): Step<Model, Real> {
  return { run, check: (model) => when(model), toString: () => name };
}

/**
 * @param begin makes a model and what it is a model of, for each sequence
 * @param after what holds after each step
 * @param end what holds at the end of a sequence
 */
export function sequences<Model extends object, Real>(
  steps: fc.Arbitrary<Step<Model, Real>>[],
  by: {
    begin(): Promise<{ model: Model; real: Real }>;
    after?(model: Model, real: Real): Promise<void>;
    end?(model: Model, real: Real): Promise<void>;
    longest?: number;
  },
): fc.IAsyncProperty<unknown> {
  const { begin, after, end, longest = 14 } = by;
  const followed = steps.map((arbitrary) =>
    arbitrary.map(
      (one): Step<Model, Real> => ({
        check: (model) => one.check(model),
        toString: () => one.toString(),
        run: async (model, real) => {
          await one.run(model, real);
          await after?.(model, real);
        },
      }),
    ),
  );
  return fc.asyncProperty(fc.commands(followed, { maxCommands: longest, size: 'max' }), async (commands) => {
    const both = await begin();
    await fc.asyncModelRun(() => both, commands);
    await end?.(both.model, both.real);
  }) as unknown as fc.IAsyncProperty<unknown>;
}
