/** The addresses of a code host, of which `git-setup` and `run` lead git to the broker. */

/** Where the addresses of a code host's repositories begin, as git, people and programs write them: git compares them by letter. */
export function addressesOf({ origin, protocol, hostname, port }: URL): string[] {
  const withPort = port === '' ? [`${origin}:${protocol === 'https:' ? 443 : 80}/`] : [];
  // A name without a dot in front of a colon is what people use as a short name of their own (`insteadOf = work:`).
  const plain = hostname.includes('.') ? [`${hostname}:`, `${hostname}:/`] : [];
  const ssh = [`git@${hostname}:`, `git@${hostname}:/`, ...plain, `ssh://git@${hostname}/`];
  return [`${origin}/`, ...withPort, ...ssh];
}
