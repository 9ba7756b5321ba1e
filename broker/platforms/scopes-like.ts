/** Returns the scopes that a pattern matches, in order; `*` is any text, as in policies. */
export function scopesLike(pattern: string, scopes: readonly string[]): string[] {
  if (!pattern.includes('*')) return scopes.filter((scope) => scope === pattern);
  const escaped = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const like = new RegExp(`^${escaped.join('.*')}$`, 's');
  return scopes.filter((scope) => like.test(scope));
}
