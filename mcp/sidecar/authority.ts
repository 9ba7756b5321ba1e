/**
 * The certificate authority of one run, for the hosts of granted platforms only. Its key exists only in the memory of this process. Node
 * reads certificates but writes none, so they are written with the ASN.1 types of RFC 5280.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyUsage,
  KeyUsageFlags,
  Name,
  NameConstraints,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
} from '@peculiar/asn1-x509';

/** Key and certificate in PEM, for a TLS server. */
export type ServerCertificate = { key: string; cert: string };

export type Authority = {
  /** The authority's certificate in PEM, for clients that are to trust it. */
  certificate: string;
  /** Returns the same certificate for a host each time. Throws RangeError for a host that is not granted. */
  certificateOf(host: string): ServerCertificate;
};

/** Longer than most runs, and short enough for a key that leaked. */
const VALID_MS = 24 * 3600 * 1000;
/** Back-dates certificates, because clocks of containers may differ from the machine's. */
const EARLIER_MS = 5 * 60 * 1000;
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const COMMON_NAME = '2.5.4.3';

type Keys = { publicKey: KeyObject; privateKey: KeyObject };
type Signer = { name: Name; keys: Keys };

/** @param hosts names in lower case as in URLs, or IP addresses without brackets; at least one */
export function makeAuthority(hosts: readonly string[], now: number = Date.now()): Authority {
  const validity = new Validity({ notBefore: new Date(now - EARLIER_MS), notAfter: new Date(now + VALID_MS) });
  const authority: Signer = { name: nameOf('agent-broker run: authority'), keys: newKeys() };
  // One key for all hosts of the run: an attacker who has it already controls this process.
  const server = newKeys();
  const made = new Map<string, ServerCertificate>();
  return {
    certificate: certify(authority, { ...authority, validity }, [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      extension(id_ce_nameConstraints, constraintsTo(hosts), true),
    ]),
    certificateOf: (host) => {
      if (!hosts.includes(host)) throw new RangeError(`${host} is no host of a granted platform`);
      const found = made.get(host) ?? {
        key: server.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
        cert: certify(authority, { name: SUBJECT, keys: server, validity }, [
          extension(id_ce_basicConstraints, new BasicConstraints(), true),
          extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
          extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
          extension(id_ce_subjectAltName, new SubjectAlternativeName([generalName(host)])),
        ]),
      };
      made.set(host, found);
      return found;
    },
  };
}

const newKeys = (): Keys => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Writes and signs a certificate (RFC 5280 section 4.1). Returns PEM. */
function certify(
  issuer: Signer,
  { name, keys, validity }: Signer & { validity: Validity },
  extensions: readonly Extension[],
): string {
  const spki = keys.publicKey.export({ format: 'der', type: 'spki' });
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const body = new TBSCertificate({
    version: 2,
    serialNumber: serialNumber(),
    signature: algorithm,
    issuer: issuer.name,
    validity,
    subject: name,
    subjectPublicKeyInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
    extensions: new Extensions([
      ...extensions,
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier(keys))),
      extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new SubjectKeyIdentifier(keyIdentifier(issuer.keys)) }),
      ),
    ]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(body)), issuer.keys.privateKey);
  const certificate = new Certificate({
    tbsCertificate: body,
    signatureAlgorithm: algorithm,
    signatureValue: bytes(signature),
  });
  const text = Buffer.from(AsnConvert.serialize(certificate)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${text.replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
}

/**
 * Name constraints (RFC 5280 section 4.2.1.10): permits these hosts. Also excludes all IP addresses or all names when no host is of that kind,
 * because a list of names does not restrict addresses. A name permits its subdomains, too.
 */
function constraintsTo(hosts: readonly string[]): NameConstraints {
  const hasAddress = hosts.some((host) => isIP(host) !== 0);
  const hasName = hosts.some((host) => isIP(host) === 0);
  const permitted = hosts.map((host) => generalName(host, isIP(host) === 4 ? '/32' : isIP(host) === 6 ? '/128' : ''));
  const excluded = [
    ...(hasAddress ? [] : [generalName('0.0.0.0', '/0'), generalName('::', '/0')]),
    ...(hasName ? [] : [new GeneralName({ dNSName: '' })]),
  ];
  const subtrees = (names: readonly GeneralName[]) =>
    new GeneralSubtrees(names.map((base) => new GeneralSubtree({ base })));
  return new NameConstraints({
    permittedSubtrees: subtrees(permitted),
    ...(excluded.length > 0 && { excludedSubtrees: subtrees(excluded) }),
  });
}

const generalName = (host: string, mask = ''): GeneralName =>
  new GeneralName(isIP(host) === 0 ? { dNSName: host } : { iPAddress: `${host}${mask}` });

const extension = (extnID: string, value: object, critical = false): Extension =>
  new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });

function nameOf(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

/**
 * The subject of all server certificates. The host is in subjectAltName only, because OpenSSL also checks a common name that looks like a host
 * against the constraints.
 */
const SUBJECT = nameOf('agent-broker run: server');

/** RFC 5280 section 4.2.1.2, method 1, over the whole SubjectPublicKeyInfo: any value unique to the key is valid. */
const keyIdentifier = ({ publicKey }: Keys): ArrayBuffer =>
  bytes(
    createHash('sha256')
      .update(publicKey.export({ format: 'der', type: 'spki' }))
      .digest()
      .subarray(0, 20),
  );

/** RFC 5280 section 4.1.2.2: positive, and at most 20 octets. */
function serialNumber(): ArrayBuffer {
  const number = randomBytes(16);
  number[0] = ((number[0] ?? 0) & 0x7f) | 0x40;
  return bytes(number);
}

/** Copies the bytes, because small Buffers share their memory. */
const bytes = (buffer: Buffer): ArrayBuffer => new Uint8Array(buffer).buffer;
