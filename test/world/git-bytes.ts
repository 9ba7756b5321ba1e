/** Bytes of git's protocols, made by hand. */

export const ZERO = '0'.repeat(40);
/** A flush: what git sends before a long push, and the shortest of all answers. */
export const PROBE = '0000';

/** Text, of which each character is a byte, as a pkt-line. */
export const pktLine = (text: string): string => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;

/** Commands of a push, and the flush behind them. */
export const commandList = (commands: readonly string[]): string => `${commands.map(pktLine).join('')}0000`;
