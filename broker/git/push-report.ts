/**
 * A refused push, or fetch, as its own protocol reports it (gitprotocol-pack, "Report Status"). git shows no body of an error to a POST, only
 * `RPC failed; HTTP 403`; what stands in a report it shows beside each ref.
 */
import type { GitRef } from '../policy/facts.ts';
import { LONGEST_PKT_LINE } from './pkt-line.ts';

const FLUSH = '0000';
const PROGRESS = '\x02';
const FATAL = '\x03';
const DATA = '\x01';
/** Less than that is in a line of side-band-64k, and of a report. */
const MOST_BYTES = LONGEST_PKT_LINE - 1_000;

/**
 * @param capabilities those that the client asked for
 * @param refs those of the push, of which none was changed
 * @param refusal `code`, which is shown beside each ref, and the whole line
 * @returns the body of the answer; undefined where the client asked for no report
 */
export function refusedPush(
  capabilities: readonly string[],
  refs: readonly GitRef[],
  { code, line }: { code: string; line: string },
): Buffer | undefined {
  if (!capabilities.some((one) => one === 'report-status' || one === 'report-status-v2')) return undefined;
  const lines = ['unpack ok\n', ...refs.map(({ name }) => `ng ${name} ${code}\n`)];
  const report = Buffer.from(`${lines.map(pktLine).join('')}${FLUSH}`);
  if (!capabilities.includes('side-band-64k')) return report;
  const bands: Buffer[] = [Buffer.from(pktLine(PROGRESS + line))];
  for (let at = 0; at < report.length; at += MOST_BYTES)
    bands.push(pktBytes(Buffer.concat([Buffer.from(DATA), report.subarray(at, at + MOST_BYTES)])));
  return Buffer.concat([...bands, Buffer.from(FLUSH)]);
}

/** The body of an answer to a fetch that is refused (gitprotocol-pack, "pkt-line": an error packet), which git shows as a remote error. */
export const refusedFetch = (line: string): string => pktLine(`ERR ${line}`);

/**
 * The body of an answer to a push whose commands were not read: a fatal error of side-band-64k, which every git asks for where the host
 * offers it.
 */
export const refusedUnread = (line: string): string => `${pktLine(`${FATAL}${line}`)}${FLUSH}`;

const pktLine = (text: string): string => `${lengthOf(Buffer.byteLength(text))}${text}`;
const pktBytes = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(lengthOf(bytes.length)), bytes]);
const lengthOf = (bytes: number): string => (bytes + 4).toString(16).padStart(4, '0');
