/** A browser without scripts: keeps cookies by host and path, follows redirects, posts forms. */
import { type Answer, send } from '../agent.ts';

type Cookie = { name: string; value: string; host: string; path: string };

export type Visit = Answer & { url: string };

export class Browser {
  cookies: Cookie[] = [];
  /** All requested addresses, redirects included. */
  readonly seen: string[] = [];
  /** Where to stop following redirects: the matching request is not sent. */
  stopAt: ((url: URL) => boolean) | undefined;

  async get(url: string, headers: Record<string, string> = {}): Promise<Visit> {
    return await this.#follow('GET', url, undefined, headers);
  }

  async post(url: string, form: Record<string, string>): Promise<Visit> {
    return await this.#follow('POST', url, new URLSearchParams(form).toString(), {});
  }

  /** Returns the Cookie header for this address. */
  cookieFor(address: string): string {
    const { hostname, pathname } = new URL(address);
    return this.cookies
      .filter(({ host, path }) => host === hostname && isBelow(pathname, path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
  }

  async #follow(method: string, start: string, body: string | undefined, headers: Record<string, string>) {
    let url = start;
    let step = { method, body };
    for (let hop = 0; hop < 20; hop++) {
      this.seen.push(url);
      if (this.stopAt?.(new URL(url))) return { status: 0, headers: new Headers(), body: undefined, text: '', url };
      const cookie = this.cookieFor(url);
      const answer = await send(url, {
        method: step.method,
        headers: {
          accept: 'text/html',
          ...(cookie !== '' && { cookie }),
          ...(step.body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
          ...headers,
        },
        ...(step.body !== undefined && { body: step.body }),
      });
      this.#keep(answer.headers.getSetCookie(), url);
      const location = answer.headers.get('location');
      if (answer.status < 300 || answer.status > 399 || location === null) return { ...answer, url };
      url = new URL(location, url).href;
      step = { method: 'GET', body: undefined };
    }
    throw new Error(`too many redirects: ${this.seen.slice(-4).join(' → ')}`);
  }

  #keep(lines: readonly string[], from: string): void {
    const { hostname: host, pathname } = new URL(from);
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf('='));
      const value = pair.slice(pair.indexOf('=') + 1);
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
      const path = attribute('path') ?? (pathname.slice(0, pathname.lastIndexOf('/')) || '/');
      const over = attribute('max-age') === '0' || Date.parse(attribute('expires') ?? '') < Date.now();
      this.cookies = this.cookies.filter((one) => one.name !== name || one.host !== host || one.path !== path);
      if (!over && value !== '') this.cookies.push({ name, value, host, path });
    }
  }
}

const isBelow = (pathname: string, path: string): boolean =>
  path === '/' || pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`);

/** Returns the first form of a page: its target, and its hidden fields. */
export function formOf(visit: Visit): { action: string; fields: Record<string, string> } {
  const action = /<form[^>]* action="([^"]+)"/.exec(visit.text)?.[1];
  if (action === undefined) throw new Error(`no form at ${visit.url}: ${visit.status} ${visit.text.slice(0, 300)}`);
  const fields: Record<string, string> = {};
  for (const [input] of visit.text.matchAll(/<input[^>]*type="hidden"[^>]*>/g))
    fields[/ name="([^"]*)"/.exec(input)![1]!] = / value="([^"]*)"/.exec(input)?.[1] ?? '';
  return { action: new URL(action, visit.url).href, fields };
}
