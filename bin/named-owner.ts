/** The options with which the operator of a machine names an owner or an organisation: `--email` and `--organisation`. */
import type { Reached } from './command-with.ts';
import { WrongUsage } from './failure.ts';

/** The body of a request for the session or the link of an owner. */
export const ownerOf = ({ email, organisation }: Reached): { email?: string; organisation?: string } => ({
  ...(email && { email }),
  ...(organisation && { organisation }),
});

/**
 * Throws WrongUsage where an owner or an organisation is named beside a credential that decides both: the command would act there. `credential`: what it
 * is, with the option or variable that contains it.
 */
export function refuseOwner(options: Reached, credential: string): void {
  const [named] = Object.keys(ownerOf(options));
  if (named === undefined) return;
  throw new WrongUsage(
    `--${named} changes nothing beside ${credential}, which says who acts, and in which organisation. Leave out one of them.`,
  );
}
