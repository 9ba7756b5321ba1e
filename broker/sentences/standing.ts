/** Describes in words what a standing approval covers, in the form that is stored. console/static/standing/sentence.js shows the same text beforehand. */
import { shown } from './readable.ts';

/** `until`: RFC 3339; for an approval of a session, the latest end. `at_most` null: any value. */
export type StandingWords = {
  count: number;
  until: string;
  session: boolean;
  free: readonly { member: string; at_most: number | null }[];
};

/** Returns plain text. Pure. */
export function standingWords({ count, until, session, free }: StandingWords): string {
  const isOne = count === 1;
  const end = `${new Date(until).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const when = session ? `in this session of the agent, and until ${end} at the latest` : `until ${end}`;
  const calls = isOne
    ? 'The next call of this agent like this one is'
    : `The next ${count} calls of this agent like this one are`;
  const all = `Everything in ${isOne ? 'it' : 'them'} is as in this one`;
  const but = free.map(
    ({ member, at_most }) => `${nameOf(member)} (${at_most === null ? 'anything' : `at most ${at_most}`})`,
  );
  return `${calls} made without asking, ${when}. ${all}${but.length === 0 ? '' : ` but ${but.join(', ')}`}.`;
}

function nameOf(member: string): string {
  if (member.startsWith('?')) return `${shown(member.slice(1))} of the query`;
  if (!member.startsWith('/')) return `part ${member} of the path`;
  const names = member.slice(1).split('/');
  return shown(names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).join('.'));
}
