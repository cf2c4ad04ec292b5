import { expect } from 'chai';
import { fillPattern, findPatternError } from '../../src/base/name-pattern.ts';

const PARTS = { name: 'Straße am Meer', size: { width: 640, height: 427 }, number: 7 };

describe('a pattern for names of results', () => {
  const filled: readonly [string, string][] = [
    ['{name}', 'Straße am Meer'],
    ['{name}-web', 'Straße am Meer-web'],
    ['{name}-{width}w', 'Straße am Meer-640w'],
    ['{number}_{width}x{height}', '007_640x427'],
    [' {name}\n', 'Straße am Meer'],
    ['..', 'image'],
    ['{name}.v2', 'Straße am Meer.v2'],
  ];
  for (const [pattern, name] of filled)
    it(`names a result ${JSON.stringify(name)} with ${JSON.stringify(pattern)}`, () => {
      expect(fillPattern(pattern, PARTS)).to.equal(name);
    });

  it('takes a name with the words of patterns as it is', () => {
    expect(fillPattern('{name}-{number}', { ...PARTS, name: '{width}$&' })).to.equal('{width}$&-007');
  });

  it('shortens the name of the input to 200 bytes rather than the rest of the pattern', () => {
    const name = fillPattern('{name}-{width}w', { ...PARTS, name: '🌊'.repeat(60) });
    expect(name).to.equal(`${'🌊'.repeat(48)}-640w`);
  });

  it('names a result without a size like its input if it has the size', () => {
    expect(fillPattern('{name}-{width}w', { ...PARTS, size: undefined })).to.equal(PARTS.name);
    expect(fillPattern('{name}-{number}', { ...PARTS, size: undefined })).to.equal(`${PARTS.name}-007`);
  });

  it('is refused with a sentence if it is empty, has a separator or an unknown word', () => {
    expect(['{name}', '{number}', ' ', 'a/b', 'a\\b', '{Width}', '{}'].map(findPatternError)).to.deep.equal([
      undefined,
      undefined,
      'The name is empty.',
      'A name cannot contain / or \\.',
      'A name cannot contain / or \\.',
      '{Width} is unknown. A name can contain {name}, {width}, {height} and {number}.',
      '{} is unknown. A name can contain {name}, {width}, {height} and {number}.',
    ]);
  });
});
