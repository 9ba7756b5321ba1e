/** The addresses of a code host that `git-setup` and `run` rewrite to the broker. */
import { WrongUsage } from './failure.ts';

/** Returns the prefixes of addresses of a code host's repositories, in the spellings that git, people and programs use: git compares them literally. */
export function addressesOf({ origin, protocol, hostname, port }: URL): string[] {
  const withPort = port === '' ? [`${origin}:${protocol === 'https:' ? 443 : 80}/`] : [];
  // Without a dot, the name in front of a colon may be a user's own short name (`insteadOf = work:`).
  const plain = hostname.includes('.') ? [`${hostname}:`, `${hostname}:/`] : [];
  const ssh = [`git@${hostname}:`, `git@${hostname}:/`, ...plain, `ssh://git@${hostname}/`];
  return [`${origin}/`, ...withPort, ...ssh];
}

/** Parses the address of a code host. Throws WrongUsage. */
export function hostOf(text: string): URL {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/')
    throw new WrongUsage(`--host ${text}: write the address of the code host, such as https://github.com.`);
  return url;
}
