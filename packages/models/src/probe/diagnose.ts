// Why a model does not answer, and what to do.
import type { ModelError } from '@oxbow/core'
import { addressOf } from '../failures/secrets.ts'

export type Fault =
  | 'key'
  | 'model_name'
  | 'address'
  | 'dns'
  | 'refused'
  | 'tls'
  | 'proxy'
  | 'network'
  | 'quota'
  | 'rate_limited'
  | 'overloaded'
  | 'stream_cut'
  | 'timeout'
  | 'request'
  | 'provider'

export interface Diagnosis {
  readonly fault: Fault
  /** The most likely cause and what to do: whole sentences, safe to show. */
  readonly advice: string
}

export interface Circumstances {
  readonly baseUrl: string
  readonly model: string
  /** The variable that holds the key. */
  readonly keyVariable?: string | undefined
  /** The proxy on the way, if any. */
  readonly proxy?: string | undefined
}

/**
 * @example
 * const { fault, advice } = diagnose(error, { baseUrl: 'https://api.deepseek.com/v1', model: 'deepseek-chat' })
 */
export function diagnose(error: ModelError, { baseUrl, model, keyVariable, proxy }: Circumstances): Diagnosis {
  const { code, status, details, retryable } = error
  const address = addressOf(baseUrl)
  switch (code) {
    case 'auth':
      return {
        fault: 'key',
        advice: `The key in ${keyVariable ?? 'its variable'} is not a key of this provider, has expired, or may not use ${model}. Create a new key and set it.`,
      }
    case 'rate_limited':
      return retryable
        ? {
            fault: 'rate_limited',
            advice: 'Too many requests for this account. Wait, or set the model’s limits below those of the provider.',
          }
        : { fault: 'quota', advice: 'The account has no credit left. Top it up, or use another key.' }
    case 'overloaded':
      return {
        fault: 'overloaded',
        advice: 'The provider is overloaded. Try again later, or configure a model in fallbacks.',
      }
    case 'stream_cut':
      return {
        fault: 'stream_cut',
        advice: `The connection broke during the answer. A hop in between may close it early${proxy === undefined ? '' : `, such as the proxy ${proxy}`}; try again.`,
      }
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
      return { fault: 'timeout', advice: 'The model took too long. Try again, or raise the model’s timeouts.' }
    case 'invalid_request':
    case 'context_overflow':
      return refusal(String(details?.body ?? ''), status, address, model)
    default:
      return unreachable(error, address, proxy)
  }
}

const UNKNOWN_MODEL =
  /model.{0,80}(?:not.?(?:found|exist)|does not|unknown|unsupported|invalid)|(?:unknown|invalid|no such).{0,20}model|InvalidEndpointOrModel/i

function refusal(body: string, status: number | undefined, address: string, model: string): Diagnosis {
  if (status === 402)
    return { fault: 'quota', advice: 'The account has no credit left. Top it up, or use another key.' }
  if (UNKNOWN_MODEL.test(body))
    return {
      fault: 'model_name',
      advice: `The provider does not have ${model}, or this account may not use it. Check the name.`,
    }
  if (status === undefined || status < 400 || status === 404 || status === 405)
    return {
      fault: 'address',
      advice: `There is no such API at ${address}. The base URL must end before the format's path, usually with /v1.`,
    }
  return {
    fault: 'request',
    advice: 'The provider refused part of the request. Check the model’s options and headers.',
  }
}

const TLS = /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/

/** Node's codes are in the chain of causes. */
function codesOf(error: unknown): string[] {
  const codes: string[] = []
  for (let it = error; it instanceof Error; it = it.cause) {
    const { code, errors } = it as { code?: unknown; errors?: unknown }
    if (typeof code === 'string') codes.push(code)
    // A name with several addresses fails once for each.
    if (Array.isArray(errors)) for (const one of errors) codes.push(...codesOf(one))
  }
  return codes
}

function unreachable(error: ModelError, address: string, proxy: string | undefined): Diagnosis {
  const codes = codesOf(error.cause)
  const has = (pattern: RegExp): boolean => codes.some((it) => pattern.test(it))
  if (typeof error.details?.body === 'string' && error.status === undefined)
    return {
      fault: 'address',
      advice: `The server at ${address} is not this API. The base URL must end before the format's path, usually with /v1.`,
    }
  if (error.cause === undefined) return { fault: 'provider', advice: 'The provider failed. Try again later.' }
  if (has(TLS)) {
    const why = has(/EXPIRED|NOT_YET_VALID/)
      ? 'If this machine’s clock is right, the certificate has expired.'
      : 'If a company authority signed it, set NODE_EXTRA_CA_CERTS to its file; for a server without TLS use http://.'
    return { fault: 'tls', advice: `The certificate of ${address} was not accepted. ${why}` }
  }
  if (proxy !== undefined)
    return {
      fault: 'proxy',
      advice: `The proxy ${proxy} (HTTPS_PROXY, HTTP_PROXY) refused the connection. Check the proxy, or exclude the host with NO_PROXY.`,
    }
  if (has(/^(?:ENOTFOUND|EAI_AGAIN)$/))
    return {
      fault: 'dns',
      advice: `The host of ${address} cannot be resolved. Check its name and this machine's network.`,
    }
  if (has(/^ECONNREFUSED$/))
    return { fault: 'refused', advice: `Nothing listens at ${address}. Check that the server runs, and the port.` }
  return {
    fault: 'network',
    advice: `Could not connect to ${address}. Check the network; behind a proxy, set HTTPS_PROXY.`,
  }
}
