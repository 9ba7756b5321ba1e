/** Describes what a standing approval lets pass: shown before it is created, and stored with it. */
import { visibleLine } from '../visible.js';

/**
 * @typedef {{ member: string, at_most: number | null }} FreeMember
 * @typedef {{ count: number, until: string, session: boolean, free: readonly FreeMember[] }} Terms
 *   `until`: the expiry; for a session the latest one
 */

/** @param {Terms} terms @returns {string} */
export function standingSentence({ count, until, session, free }) {
  const isOne = count === 1;
  const end = `${new Date(until).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const when = session ? `in this session of the agent, and until ${end} at the latest` : `until ${end}`;
  const calls = isOne
    ? 'The next call of this agent like this one is'
    : `The next ${count} calls of this agent like this one are`;
  const all = `Everything in ${isOne ? 'it' : 'them'} is as in this one`;
  const but = free.map(
    ({ member, at_most }) => `${memberName(member)} (${at_most === null ? 'anything' : `at most ${at_most}`})`,
  );
  return `${calls} made without asking, ${when}. ${all}${but.length === 0 ? '' : ` but ${but.join(', ')}`}.`;
}

/** Formats a JSON pointer for a person: `/item/name` is `item.name`. @param {string} member @returns {string} */
export function memberName(member) {
  if (member.startsWith('?')) return `${visibleLine(member.slice(1))} of the query`;
  if (!member.startsWith('/')) return `part ${member} of the path`;
  const names = member.slice(1).split('/');
  return visibleLine(names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).join('.'));
}
