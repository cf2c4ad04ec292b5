// @full: all documented responses
import { expect } from 'chai';
import { jsonOf, sendForm } from '../helpers/client.ts';
import { answerChecker, type Document, documentedResponses } from '../helpers/openapi.ts';
import { CASES, READS, type ResponseCase } from '../helpers/response-cases.ts';
import { type OwnService, startService } from '../helpers/service.ts';

const labelOf = ({ operation, status, type = 'application/json' }: ResponseCase): string =>
  `${operation} ${status} ${type}`;

describe('GET /openapi.json', () => {
  let service: OwnService;
  let document: Document;
  /**
   * Services with settings of their own. All cases with the same cause share one, because a start
   * takes 0.3 s of CPU time.
   */
  const own = new Map<string, OwnService>();
  const startOnce = async (how: string, settings: ResponseCase['settings']): Promise<OwnService> => {
    if (!settings) return service;
    const started =
      own.get(how) ?? (await startService({ RATE_LIMIT_PER_MINUTE: '1000', ...(await settings()) }));
    own.set(how, started);
    return started;
  };
  before(async () => {
    service = await startService({ RATE_LIMIT_PER_MINUTE: '1000' });
    document = jsonOf(await sendForm(`${service.base}/openapi.json`));
  });
  after(async () => {
    for (const started of [service, ...own.values()]) await started.stop();
  });

  it('states the address of the request', async () => {
    expect(document.servers[0]?.url).to.equal(service.base);
    await using proxied = await startService({ TRUST_PROXY: 'loopback' });
    const urlFor = async (host: string): Promise<string> => {
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': host };
      const { body } = await sendForm(`${proxied.base}/openapi.json`, { headers });
      return (JSON.parse(body.toString()) as Document).servers[0]?.url ?? '';
    };
    expect(await urlFor('images.example:8443')).to.equal('https://images.example:8443/api/v1');
    expect(await urlFor('a"b')).to.match(/^http:\/\/localhost:\d+\/api\/v1$/);
  });

  it('documents only responses that have a test case', () => {
    expect(documentedResponses(document)).to.have.members([...new Set(CASES.map(labelOf))]);
  });

  for (const [how, cases] of Map.groupBy(CASES, (one) => one.how))
    it(`documents every response for ${how}`, async () => {
      const check = answerChecker(document);
      const answers: Promise<string>[] = [];
      for (const { operation, settings, send } of cases) {
        const target = await startOnce(how, settings);
        answers.push(send(target).then((answer) => check(operation, answer)));
      }
      expect(await Promise.all(answers)).to.deep.equal(cases.map(labelOf));
    });

  it('documents GET such that it holds for HEAD without the body', async () => {
    for (const [operation, path] of Object.entries(READS)) {
      const answer = await sendForm(service.base + path, { method: 'HEAD' });
      expect(answerChecker(document)(operation, answer, false)).to.equal(`${operation} 200 application/json`);
    }
  });
});
