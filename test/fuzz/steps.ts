/** Sequences of steps on a running broker and on a small model of it, which predicts the result of each step. */
import fc from 'fast-check';

/** A step applied to both. It throws where they differ. `when`: whether the model allows the step now. */
export type Step<Model extends object, Real> = fc.AsyncCommand<Model, Real>;

export function step<Model extends object, Real>(
  name: string,
  run: (model: Model, real: Real) => Promise<void>,
  when: (model: Readonly<Model>) => boolean = () => true,
): Step<Model, Real> {
  return { run, check: (model) => when(model), toString: () => name };
}

/**
 * @param begin creates a model and its real counterpart, for each sequence
 * @param after invariants after each step
 * @param end invariants at the end of a sequence
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
