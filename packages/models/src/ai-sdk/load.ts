// Provider packages of the AI SDK, loaded by names like `google:gemini-3-pro-preview`. They are optional: only a model
// of that provider needs its package.
import nodeModule from 'node:module'
import { OxbowError } from '@oxbow/core'
import type { AiSdkModel } from './sdk-model-type.ts'

export interface SdkSettings {
  readonly model: string
  readonly apiKey: string | undefined
  readonly baseUrl: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly fetch: typeof globalThis.fetch
}

export interface SdkPackage {
  readonly name: string
  /** As installed. */
  readonly version: string
  /** Environment variables whose values errors must not show. */
  readonly secrets: readonly string[]
  load(settings: SdkSettings): Promise<AiSdkModel>
}

export const googlePackage: SdkPackage = {
  name: '@ai-sdk/google',
  version: '4',
  secrets: [],
  async load({ model, apiKey, baseUrl, fetch }) {
    const { createGoogle } = await import('@ai-sdk/google')
    return createGoogle({ ...given({ apiKey, baseURL: baseUrl }), fetch })(model)
  },
}

export const bedrockPackage: SdkPackage = {
  name: '@ai-sdk/amazon-bedrock',
  version: '5',
  secrets: ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  async load({ model, baseUrl, environment, fetch }) {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
    const settings = given({
      region: environment.AWS_REGION,
      apiKey: environment.AWS_BEARER_TOKEN_BEDROCK?.trim(),
      accessKeyId: environment.AWS_ACCESS_KEY_ID?.trim(),
      secretAccessKey: environment.AWS_SECRET_ACCESS_KEY?.trim(),
      sessionToken: environment.AWS_SESSION_TOKEN?.trim(),
      baseURL: baseUrl,
    })
    return createAmazonBedrock({ ...settings, fetch })(model)
  },
}

/** @throws OxbowError `model_config` with the line to type, when the package is not there. */
export function needPackage(id: string, { name, version }: SdkPackage): void {
  try {
    // Not imported by name: an older Node has no such function, and the check of its version comes first.
    if (nodeModule.findPackageJSON(name, import.meta.url)) return
  } catch {
    // Told below.
  }
  throw new OxbowError('model_config', `Models of ${id} need a package. Install it: npm i ${name}@${version}`)
}

/** The package decides about empty or missing values. */
const given = <Settings extends Record<string, string | undefined>>(settings: Settings): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).filter((entry): entry is [string, string] => Boolean(entry[1])))
