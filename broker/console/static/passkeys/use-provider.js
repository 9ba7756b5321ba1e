// What a passkey can be used for depends on how owners sign in: with an identity provider, a passkey cannot sign in.
import { ask } from '/console/api.js';
import { useEffect, useState } from '/console/html.js';

/**
 * Returns the host of the identity provider where owners sign in; null when they sign in at the broker itself. Undefined until loaded; the page
 * then promises nothing.
 *
 * @returns {string | null | undefined}
 */
export function useProvider() {
  const [provider, setProvider] = useState(/** @type {string | null | undefined} */ (undefined));
  useEffect(() => {
    ask('GET', '/owner/sign-in-options', undefined, { signIn: false }).then(
      (options) => setProvider(options.method === 'oidc' ? options.provider : null),
      () => {},
    );
  }, []);
  return provider;
}

/**
 * Returns what a passkey can do, as the end of a sentence.
 *
 * @param {string | null | undefined} provider the result of useProvider
 */
export const canDo = (provider) => (provider === null ? 'sign in and decide' : 'decide');
