/** What token endpoints answer, made what RFC 6749 section 5 says they answer, as far as everybody knows what was meant. */
import type { ProviderFetch } from '../egress/provider-fetch.ts';

export type TokenManners = {
  /** What the server calls a bearer token. */
  tokenType: string | undefined;
  /** An ID token counts for nothing here: its issuer is not known, or it was read when the person connected. */
  withoutIdToken: boolean;
};

/** The fetch through which a token is asked for. Answers that are not JSON objects come through as they are. */
export function tokenFetch(fetch: ProviderFetch, manners: TokenManners): ProviderFetch {
  return async (url, options) => {
    const response = await fetch(url, options);
    if (!(response.headers.get('content-type') ?? '').includes('json')) return response;
    const text = await response.text();
    const body = objectIn(text);
    const again = (status: number, value: string) =>
      new Response(value === '' ? null : value, { status, headers: { 'content-type': 'application/json' } });
    if (!body) return again(response.status, text);
    // GitHub and Slack say with 200 that there is no token.
    const isError = response.status === 200 && typeof body.error === 'string' && body.access_token === undefined;
    return again(isError ? 400 : response.status, JSON.stringify(isError ? body : tidy(body, manners)));
  };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function tidy(body: Record<string, unknown>, { tokenType, withoutIdToken }: TokenManners): Record<string, unknown> {
  const { token_type: type, expires_in: life, refresh_token: refresh, scope, id_token: idToken, ...rest } = body;
  const seconds = typeof life === 'string' && /^\d{1,10}$/.test(life) ? Number(life) : life;
  const isOurs = tokenType !== undefined && typeof type === 'string' && type.toLowerCase() === tokenType.toLowerCase();
  return {
    ...rest,
    ...(type !== undefined && { token_type: isOurs ? 'bearer' : type }),
    // A life that nobody can read is one that nobody said: the upstream tells when it is over.
    ...(typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 && { expires_in: seconds }),
    ...(typeof refresh === 'string' && refresh !== '' && { refresh_token: refresh }),
    // Some write commas between scopes, whatever was sent.
    ...(typeof scope === 'string' && { scope: scope.split(/[ ,]+/).filter(Boolean).join(' ') }),
    ...(idToken !== undefined && !withoutIdToken && { id_token: idToken }),
  };
}
