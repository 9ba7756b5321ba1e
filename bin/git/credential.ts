/** The protocol between git and its credential helpers (git-credential(1), "Input/output format"). */

/** The longest lifetime of an agent token, in seconds: the requests of one clone can be minutes apart. */
const LIFETIME_S = 300;
const CONNECTION_PREFIX = 'connection.';

/**
 * Answers the `get` of a credential helper.
 *
 * @param asked lines `key=value`, as git writes them
 * @param brokerUrl without a trailing slash
 * @param sign makes a token with a lifetime of so many seconds
 * @param now milliseconds
 * @returns lines for git: user name and password. Empty for another host, or another path of the broker: git then asks its
 * next helper
 */
export function answerGit(asked: string, brokerUrl: string, sign: (seconds: number) => string, now: number): string {
  const of = readAttributes(asked);
  if (!isGoverned(of, brokerUrl)) return '';
  const given = of.get('username') ?? '';
  return [
    `username=${given.startsWith(CONNECTION_PREFIX) ? given : 'agent'}`,
    `password=${sign(LIFETIME_S)}`,
    `password_expiry_utc=${Math.floor(now / 1000) + LIFETIME_S}`,
    '',
  ].join('\n');
}

function readAttributes(text: string): Map<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.includes('='));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

/** Whether the request goes to `/git/` of the broker. Git sends the path only where credential.useHttpPath is set. */
function isGoverned(of: ReadonlyMap<string, string>, brokerUrl: string): boolean {
  const broker = new URL(`${brokerUrl}/git/`);
  const path = `/${of.get('path') ?? ''}`;
  return (
    `${of.get('protocol')}:` === broker.protocol &&
    of.get('host')?.toLowerCase() === broker.host &&
    path.startsWith(broker.pathname) &&
    !/(^|\/)\.{1,2}(\/|$)|%|\\/.test(path)
  );
}
