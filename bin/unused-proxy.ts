const NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** That the environment names a proxy, and Node does not use it, as the end of an advice; '' where that is not so. */
export function unusedProxy(environment = process.env): string {
  const name = environment.NODE_USE_ENV_PROXY === '1' ? undefined : NAMES.find((one) => environment[one]);
  return name === undefined ? '' : ` ${name} is set, and used only with NODE_USE_ENV_PROXY=1.`;
}
