/**
 * Parses a request like lenient servers: header names as CGI, WSGI and PHP read them (RFC 3875 §4.1.18), parameter names as PHP does, a method
 * override wherever Rack, Symfony or Laravel accept one, also in members of JSON, and JSON whatever type the body has.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

export type Understood = {
  /** The method that would be executed. */
  method: string;
  /** `HTTP_X_API_KEY` and the like; values of repeated headers are joined with commas. */
  env: Record<string, string>;
  query: Record<string, string>;
  form: Record<string, string>;
};

const METHOD_HEADERS = [
  'HTTP_X_HTTP_METHOD_OVERRIDE',
  'HTTP_X_HTTP_METHOD',
  'HTTP_X_METHOD_OVERRIDE',
  'HTTP_X_TUNNELED_METHOD',
];
const METHODS = /^(?:GET|PUT|PATCH|DELETE)$/i;

/** Appends one entry per request to `understood`, and answers with the method that it parsed. */
export function lenientServer(understood: Understood[]) {
  return (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const env: Record<string, string> = {};
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      const name = `HTTP_${request.rawHeaders[i]!.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`;
      const value = request.rawHeaders[i + 1]!;
      env[name] = name in env ? `${env[name]},${value}` : value;
    }
    const query = parameters(request.url!.split('?')[1] ?? '');
    const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded';
    const form = isForm ? parameters(body) : {};
    const member = methodIn(body);
    const override = [...METHOD_HEADERS.map((name) => env[name]), query._method, form._method, member].find(Boolean);
    const method = request.method === 'POST' && override ? override.toUpperCase() : request.method!;
    understood.push({ method, env, query, form });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method }));
  };
}

/** Symfony and Laravel read members of JSON as form fields; invalid methods are ignored. */
function methodIn(body: string): string | undefined {
  if (!body.trimStart().startsWith('{')) return undefined;
  const { _method: method } = JSON.parse(body) as Record<string, unknown>;
  return typeof method === 'string' && METHODS.test(method) ? method : undefined;
}

/** PHP, `php_register_variable_ex`: leading blanks are dropped; blanks, dots and an open bracket become `_`. */
function parameters(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of text.split(/[&;]/)) {
    const [name = '', value = ''] = pair.split('=').map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
    const read = name.replace(/^ +/, '');
    const head = /^([^[]+)\[[^\]]*\]/.exec(read)?.[1] ?? read;
    if (head !== '') found[head.replace(/[ .[]/g, '_')] = value;
  }
  return found;
}
