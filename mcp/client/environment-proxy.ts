/**
 * For an agent of `node:http`: the proxies that the environment names (HTTPS_PROXY, NO_PROXY, …), where NODE_USE_ENV_PROXY asks for them, as Node's own
 * agents and `fetch` read them.
 */
export const environmentProxy = (environment = process.env): { proxyEnv?: typeof process.env } =>
  environment.NODE_USE_ENV_PROXY === '1' ? { proxyEnv: environment } : {};

const NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** That a proxy is set and not used, as the end of an advice; '' where that is not so. */
export function unusedProxy(environment = process.env): string {
  const name = environment.NODE_USE_ENV_PROXY === '1' ? undefined : NAMES.find((one) => environment[one]);
  return name === undefined ? '' : ` ${name} is set, and used only with NODE_USE_ENV_PROXY=1.`;
}
