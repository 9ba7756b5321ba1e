/**
 * Writes refusals of a push or fetch in git's own protocol (gitprotocol-pack, "Report Status"). git does not show the body of an error
 * answer to a POST, only `RPC failed; HTTP 403`; a report is shown beside each ref.
 */
import type { GitRef } from '../policy/facts.ts';
import { MAX_PKT_LINE_LENGTH } from './pkt-line.ts';

const FLUSH = '0000';
const PROGRESS = '\x02';
const FATAL = '\x03';
const DATA = '\x01';
/** Payload per pkt-line of side-band-64k, and of a report; below the limit. */
const MAX_BYTES = MAX_PKT_LINE_LENGTH - 1_000;

/**
 * Builds the answer to a refused push.
 *
 * @param capabilities those that the client requested
 * @param refs those of the push, none of which was changed
 * @param refusal `code` is shown beside each ref, `line` is the full message
 * @returns the body; undefined when the client did not request a report
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
  for (let at = 0; at < report.length; at += MAX_BYTES)
    bands.push(pktBytes(Buffer.concat([Buffer.from(DATA), report.subarray(at, at + MAX_BYTES)])));
  return Buffer.concat([...bands, Buffer.from(FLUSH)]);
}

/** The body of the answer to a refused fetch: an error packet (gitprotocol-pack, "pkt-line"), which git shows as a remote error. */
export const refusedFetch = (line: string): string => pktLine(`ERR ${line}`);

/** The body of the answer to a request for the refs: the same error packet after the announcement of the service (gitprotocol-http, "Smart Server Response"). */
export const refusedAdvertisement = (service: string, line: string): string =>
  `${pktLine(`# service=${service}\n`)}${FLUSH}${refusedFetch(line)}`;

/**
 * The body of the answer to a push whose commands were not read: a fatal error in side-band-64k, which every git client requests when the
 * host offers it.
 */
export const refusedUnread = (line: string): string => `${pktLine(`${FATAL}${line}`)}${FLUSH}`;

const pktLine = (text: string): string => `${lengthOf(Buffer.byteLength(text))}${text}`;
const pktBytes = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(lengthOf(bytes.length)), bytes]);
const lengthOf = (bytes: number): string => (bytes + 4).toString(16).padStart(4, '0');
