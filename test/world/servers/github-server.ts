/** A server on loopback that answers like the parts of GitHub's REST API that the command line and connections use. */
import { startUpstream, type Upstream } from './upstream.ts';

export type GitHubServer = Upstream & { /** Base URL of the REST API. */ api: string };

/**
 * `tokens`: the classic scopes of each token; null: a fine-grained one, whose scopes GitHub does not report. `oauth`: it consents immediately, and
 * gives this token to clients with the client secret.
 */
export async function startGitHub(
  tokens: ReadonlyMap<string, string | null>,
  oauth?: { clientSecret: string; token: string },
): Promise<GitHubServer> {
  const upstream = await startUpstream();
  upstream.answer = (request, response, body) => {
    const asked = new URL(request.url!, 'http://x');
    if (oauth && asked.pathname === '/login/oauth/authorize') {
      const back = new URL(asked.searchParams.get('redirect_uri')!);
      back.searchParams.set('code', 'code-of-consent');
      back.searchParams.set('state', asked.searchParams.get('state')!);
      return void response.writeHead(302, { location: back.href }).end();
    }
    const json = (status: number, body: unknown, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (oauth && asked.pathname === '/login/oauth/access_token') {
      const isKnown = new URLSearchParams(body).get('client_secret') === oauth.clientSecret;
      if (!isKnown) return void json(400, { error: 'incorrect_client_credentials' });
      return void json(200, { access_token: oauth.token, token_type: 'bearer', scope: 'repo' });
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!tokens.has(token)) return void json(401, { message: 'Bad credentials', documentation_url: 'https://docs' });
    const scopes = tokens.get(token);
    const told = {
      ...(scopes != null && { 'x-oauth-scopes': scopes }),
      'github-authentication-token-expiration': '2031-01-31 10:00:00 UTC',
    };
    const { pathname } = asked;
    if (pathname === '/api/v3/user') return void json(200, { login: 'ann', id: 1 }, told);
    if (pathname === '/api/v3/repos/acme/shop/issues') return void json(200, [{ number: 1, title: 'Broken' }], told);
    return void json(404, { message: 'Not Found' }, told);
  };
  return { ...upstream, api: `${upstream.url}/api/v3` };
}
