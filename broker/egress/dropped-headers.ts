/**
 * Headers that an agent may not set: hop-by-hop (RFC 9110 §7.6.1), about the body and its encoding, about the client or the origin of the
 * request, overrides of method or path, credentials, and the agent's trace context, which is not sent to platforms.
 */
const DROPPED = new Set(
  `accept-encoding alt-used authorization baggage cf-connecting-ip client-ip connection cookie cookie2 early-data expect forwarded
  host http2-settings keep-alive max-forwards private-token sudo te traceparent tracestate trailer trailers transfer-encoding true-client-ip
  upgrade via x-accel-mapping x-client-ip x-cluster-client-ip x-envoy-original-path x-host x-http-method
  x-http-method-override x-method-override x-tunneled-method x-original-host x-original-method x-original-uri x-original-url x-override-url
  x-real-ip x-rewrite-url x-sendfile-type x-upstream-authorization`.split(/\s+/),
);
/**
 * The last ones are set by reverse proxies to say who is signed in, and trusted by the servers behind them: nginx, Apache and Authelia,
 * oauth2-proxy, Grafana's auth proxy, Kubernetes' front proxy, and the gateways of AWS, Google, Azure and Cloudflare.
 */
const DROPPED_PREFIXES = `content- proxy- x-forwarded x-svc-
  remote- x-remote- x-webauth- x-auth-request- x-authenticated- ssl-client- x-ssl-client- x-client-cert x-amzn-oidc-
  x-goog-authenticated-user- x-goog-iap- x-ms-client-principal cf-access-`.split(/\s+/);

/** Whether a header is dropped on every platform. `name`: in lower case. */
export function isDropped(name: string): boolean {
  return DROPPED.has(name) || DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
