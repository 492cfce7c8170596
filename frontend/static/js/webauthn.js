// @ts-check
/** WebAuthn's options and answers between their JSON form and what `navigator.credentials` takes and gives. */

/** @param {string} text base64url @returns {ArrayBuffer} */
export function toBytes(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0)).buffer;
}

/** @param {ArrayBuffer | null} bytes @returns {string | null} base64url */
export function toText(bytes) {
  if (bytes === null) return null;
  const binary = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {Array<any> | undefined} list */
function descriptors(list) {
  return (list ?? []).map((entry) => ({ ...entry, id: toBytes(entry.id) }));
}

/**
 * Have an authenticator make a passkey.
 * @param {any} options in JSON form
 */
export async function create(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: descriptors(options.excludeCredentials),
  };
  const made = /** @type {PublicKeyCredential} */ (await navigator.credentials.create({ publicKey }));
  const response = /** @type {AuthenticatorAttestationResponse} */ (made.response);
  return {
    ...identity(made),
    response: {
      clientDataJSON: toText(response.clientDataJSON),
      attestationObject: toText(response.attestationObject),
      transports: response.getTransports?.() ?? [],
    },
  };
}

/**
 * Have an authenticator sign with a passkey.
 * @param {any} options in JSON form
 */
export async function get(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: descriptors(options.allowCredentials),
  };
  const used = /** @type {PublicKeyCredential} */ (await navigator.credentials.get({ publicKey }));
  const response = /** @type {AuthenticatorAssertionResponse} */ (used.response);
  return {
    ...identity(used),
    response: {
      clientDataJSON: toText(response.clientDataJSON),
      authenticatorData: toText(response.authenticatorData),
      signature: toText(response.signature),
      userHandle: toText(response.userHandle),
    },
  };
}

/** @param {PublicKeyCredential} credential */
function identity(credential) {
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

/** Whether this browser can do it here. */
export function isPossible() {
  return window.isSecureContext && "credentials" in navigator && "PublicKeyCredential" in window;
}

/**
 * What went wrong, in words. Browsers do not tell a refusal from a time that ran out.
 * @param {unknown} error
 */
export function words(error) {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "InvalidStateError") return gettext("This device has a passkey for this account already.");
  if (name === "NotAllowedError") return gettext("It was cancelled, or took too long. Try again.");
  if (error instanceof Error && error.message && !name) return error.message;
  return gettext("The browser could not use a passkey here.");
}
