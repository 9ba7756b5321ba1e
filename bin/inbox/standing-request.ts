/** Builds a standing approval, given together with an approval, from the options of a command. */
import type { Body, HeldCall } from '../../broker/console/answers.ts';
import { standingSentence } from '../../broker/console/static/standing/sentence.js';
import type { Lasting } from '../duration.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';

/** `free`: parts that may vary: `/text`, or `/amount=500` for a number of at most so much. */
export type StandingOptions = { count: number; free: readonly string[] } & ({ until: string } | { session: true });

type StandingBody = NonNullable<Body<'POST', '/owner/approvals/x/approve'>['standing']>;

/** Reads `--next`, `--for`, `--session` and `--free`; undefined without any of them. Throws WrongUsage. */
export function readStandingOptions(options: {
  next?: number;
  for?: Lasting;
  session?: true;
  free?: readonly string[];
}): StandingOptions | undefined {
  const { next, for: lasting, session, free = [] } = options;
  if (next === undefined) {
    if (lasting === undefined && session === undefined && free.length === 0) return undefined;
    throw new WrongUsage('--for, --session and --free say how calls like this one pass: say how many with --next.');
  }
  if ((lasting === undefined) === (session === undefined))
    throw new WrongUsage('With --next, also say until when: --for 1h, a date and time, or --session.');
  if (lasting === 'never') throw new WrongUsage('A standing approval ends after 30 days at most.');
  if (lasting === undefined) return { count: next, free, session: true };
  return { count: next, free, until: new Date(Date.now() + lasting * 1000).toISOString() };
}

/** Formats it for the owner API. Throws CommandFailed where this call cannot have a standing approval. */
export function standingRequest({ standing: offer }: HeldCall, wanted: StandingOptions): StandingBody {
  if (!offer?.possible) throw new CommandFailed(`It can only be approved by itself. ${offer?.why ?? ''}`.trim());
  const free = wanted.free.map((text) => {
    const exact = offer.members.some((one) => one.member === text);
    const [, member = text, limit] = (!exact && /^(.*)=([0-9.]+)$/.exec(text)) || [];
    const offered = offer.members.find((one) => one.member === member);
    if (!offered)
      throw new CommandFailed(
        `${member} may not differ. ${offer.members.length === 0 ? 'Nothing in this call may.' : `What may: ${offer.members.map((one) => one.member).join(', ')}`}`,
      );
    // Without its limit, it would allow more than what was asked for.
    if (limit !== undefined && offered.at_most === null)
      throw new CommandFailed(
        `${member} is no number, so it has no limit: leave out =${limit}, and it may be anything.`,
      );
    return {
      member,
      ...(offered.at_most !== null && { at_most: limit === undefined ? offered.at_most : Number(limit) }),
    };
  });
  const { count } = wanted;
  return 'session' in wanted ? { count, session: true, free } : { count, until: wanted.until, free };
}

/** Describes what the standing approval allows. @param longestSessionSeconds of the broker */
export const describeStanding = (body: StandingBody, longestSessionSeconds: number): string =>
  standingSentence({
    count: body.count,
    until: body.until ?? new Date(Date.now() + longestSessionSeconds * 1000).toISOString(),
    session: body.session === true,
    free: (body.free ?? []).map(({ member, at_most }) => ({ member, at_most: at_most ?? null })),
  });
