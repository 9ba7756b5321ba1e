/** Hand-made messages of git's protocols. */

export const ZERO = '0'.repeat(40);
/** A flush packet: git's probe before a long push, and the shortest answer. */
export const PROBE = '0000';

/** Encodes text, one byte per character, as a pkt-line. */
export const pktLine = (text: string): string => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;

/** Encodes commands of a push, with the flush packet. */
export const commandList = (commands: readonly string[]): string => `${commands.map(pktLine).join('')}0000`;
