/** Names of refs (git-check-ref-format). */

/** In bytes. No code host accepts longer names, and an audit row stores all of them. */
const MAX_NAME_LENGTH = 1_024;
/** Rules 4, 5 and 10: control characters, space, and characters with a meaning in patterns and revisions. */
const FORBIDDEN = /[\x00-\x20\x7f~^:?*[\\]/;
/**
 * Not forbidden by git: invisible characters and those that change the direction of text would display another name to readers of the audit log. U+FE0F turns
 * the symbol before it into a picture.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\u2800]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{Extended_Pictographic})\ufe0f/u;

/** Returns why a name is not valid, as a phrase; undefined for a full name such as `refs/heads/main`. */
export function refNameProblem(name: string): string | undefined {
  if (Buffer.byteLength(name) > MAX_NAME_LENGTH) return `is longer than ${MAX_NAME_LENGTH} bytes`;
  const parts = name.split('/');
  if (parts[0] !== 'refs' || parts.length < 3) return 'does not begin with refs/ and a name space';
  if (FORBIDDEN.test(name)) return 'has a character that git does not allow in names';
  if (INVISIBLE.test(name)) return 'has an invisible character';
  if (name.includes('..') || name.includes('@{') || name.endsWith('.')) return 'has "..", "@{" or a dot at its end';
  if (parts.some((part) => part === '' || part.startsWith('.') || part.endsWith('.lock')))
    return 'has a part that is empty, begins with a dot or ends with ".lock"';
  return undefined;
}
