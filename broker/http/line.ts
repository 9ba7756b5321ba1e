/** Builds errors of `/git`: one line of plain text, which git prints after `remote:` (specification, Errors 1). */
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';

/** The broker's name in such a line. */
const SERVICE = 'agent-broker';

const LINE_TYPE = 'text/plain; charset=utf-8';

/** Headers of every answer of `/git`, so that nothing in it can act on the console's origin. */
export const GIT_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
};

/** `<service>: <code> - <what>`, in one line. */
const lineText = (code: string, what: string): string =>
  `${SERVICE}: ${code} - ${what.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}\n`;

/** Returns an answer of one line. */
export const line = (status: number, code: string, what: string, headers: Record<string, string> = {}): Reply => ({
  status,
  type: LINE_TYPE,
  headers: { ...GIT_HEADERS, ...headers },
  body: lineText(code, what),
});

/**
 * Returns a line for git-lfs. Of an error it shows only the `message` of this JSON (git-lfs, docs/api/batch.md, Response Errors); of a text it shows
 * nothing, and guesses the cause from the status.
 */
export const lfsLine = (status: number, code: string, what: string): Reply => ({
  ...line(status, code, what),
  type: 'application/vnd.git-lfs+json',
  body: JSON.stringify({ message: lineText(code, what).trimEnd() }),
});

export function lineReply({ status, code, message, headers }: Refusal): Reply {
  return line(status, code, message, headers);
}
