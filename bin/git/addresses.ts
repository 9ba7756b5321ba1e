/** The addresses of a code host that `git-setup` and `run` rewrite to the broker. */
import { WrongUsage } from '../failure.ts';

/** Hosts that serve SSH at port 443, for networks that block port 22, by code host. */
const SSH_AT_443: Readonly<Record<string, readonly string[]>> = {
  'github.com': ['ssh.github.com:443'],
  'gitlab.com': ['altssh.gitlab.com:443'],
  'bitbucket.org': ['altssh.bitbucket.org:443'],
};

/** Other spellings of a code host, in letter case or as an alias, which people write; git compares addresses literally. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  'github.com': ['GitHub.com', 'Github.com', 'www.github.com'],
  'gitlab.com': ['GitLab.com', 'Gitlab.com'],
  'bitbucket.org': ['Bitbucket.org', 'BitBucket.org'],
};

/** Returns the prefixes of addresses of a code host's repositories, in the spellings that git, people and programs use. */
export function addressesOf({ origin, protocol, host, hostname, port }: URL): string[] {
  const [other, usual] = protocol === 'https:' ? ['http:', 443] : ['https:', 80];
  const withoutPort = port === '' ? [`${origin}:${usual}/`, `${other}//${hostname}/`] : [];
  // Without a dot, the name in front of a colon may be a user's own short name (`insteadOf = work:`).
  const plain = hostname.includes('.') ? [`${hostname}:`, `${hostname}:/`] : [];
  const ssh = [hostname, `${hostname}:22`, ...(SSH_AT_443[hostname] ?? [])].map((at) => `ssh://git@${at}/`);
  return [
    ...[`${origin}/`, `${protocol}//git@${host}/`, ...withoutPort, `git://${hostname}/`],
    ...[`git@${hostname}:`, `git@${hostname}:/`, ...plain, ...ssh, `git+ssh://git@${hostname}/`],
    ...(OTHER_NAMES[host] ?? []).flatMap((name) => [`${protocol}//${name}/`, `git@${name}:`]),
  ];
}

/** Parses the address of a code host. Throws WrongUsage. */
export function hostOf(text: string): URL {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/')
    throw new WrongUsage(`--host ${text}: write the address of the code host, such as https://github.com.`);
  return url;
}
