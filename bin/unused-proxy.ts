const NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** Returns a note, to end an advice, that the environment names a proxy which Node does not use; '' when that is not so. */
export function unusedProxy(environment = process.env): string {
  const name = environment.NODE_USE_ENV_PROXY === '1' ? undefined : NAMES.find((one) => environment[one]);
  return name === undefined ? '' : ` ${name} is set, and used only with NODE_USE_ENV_PROXY=1.`;
}
