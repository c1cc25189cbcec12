/**
 * A language model of the AI SDK, specification v4. Structural, because published types must not import an optional
 * package; `LanguageModelV4` of `@ai-sdk/provider` is assignable to it.
 */
export interface AiSdkModel {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: unknown
  doGenerate(options: never): PromiseLike<object>
  doStream(options: never): PromiseLike<{ readonly stream: object }>
}
