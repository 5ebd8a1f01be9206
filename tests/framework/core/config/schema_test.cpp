#include "framework/core/config/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/core/config/node.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Options {
  std::int64_t workers = 12;
  double lr = 0.5;
  double momentum = 0.9;
  bool blurpool = false;
  std::int64_t lr_tta = 0;
  std::string arch = "rn18";
  std::string order = "random";
  std::vector<double> milestones = {30, 60};
  std::vector<std::string> fields;
  ConfigNode params;
};

class SchemaTest : public ::testing::Test {
 protected:
  SchemaTest() {
    schema_.add("data.num_workers", &options_.workers, "Decoding threads.").min(1).max(1024);
    schema_.add("data.order", &options_.order, "Order of samples.")
        .choices({"random", "quasi_random"});
    schema_.add("lr.lr", &options_.lr, "Peak learning rate.").above(0);
    schema_.add("lr.momentum", &options_.momentum, "Momentum.").min(0).below(1);
    schema_.add("lr.milestones", &options_.milestones, "Epochs.");
    schema_.add("validation.lr_tta", &options_.lr_tta, "Flip.");
    schema_.add("model.blurpool", &options_.blurpool, "Blur.");
    schema_.add("model.arch", &options_.arch, "Name.");
    schema_.add("model.params", &options_.params, "The model's own options.");
    schema_.add("data.fields", &options_.fields, "Names.");
    schema_.add_dead("training.bn_wd", "does nothing in the original either");
  }

  /// The error messages for a YAML text; its warnings are in `warnings_`.
  std::vector<std::string> errors(const std::string& yaml) {
    Diagnostics diagnostics;
    schema_.apply(parse_yaml(yaml, "r.yaml", diagnostics), diagnostics);
    warnings_ = diagnostics.warnings();
    return diagnostics.errors();
  }

  std::vector<std::string> override_errors(const std::string& key, const std::string& value) {
    Diagnostics diagnostics;
    schema_.apply({key, parse_override(value, {"command line", 0, 0}, diagnostics)}, diagnostics);
    warnings_ = diagnostics.warnings();
    return diagnostics.errors();
  }

  Options options_;
  Schema schema_;
  std::vector<std::string> warnings_;
};

TEST_F(SchemaTest, AWordMayMeanAnInteger) {
  std::int64_t level = 1;
  Schema schema;
  schema.add("level", &level, "Level.").min(0).max(2).word("gpu", 3);
  const auto take = [&](const std::string& value) {
    Diagnostics diagnostics;
    schema.apply({"level", parse_override(value, {"command line", 0, 0}, diagnostics)},
                 diagnostics);
    return diagnostics.errors();
  };
  EXPECT_THAT(take("gpu"), IsEmpty());
  EXPECT_EQ(level, 3);
  EXPECT_EQ(schema.values().at("level"), "gpu");
  EXPECT_EQ(schema.keys().at(0).value, "\"gpu\"");
  EXPECT_THAT(take("2"), IsEmpty());
  EXPECT_EQ(level, 2);
  EXPECT_EQ(schema.values().at("level"), 2);
  // Only the word is accepted, not the number that it stands for.
  EXPECT_THAT(take("3"), ElementsAre(Names("level", ">= 0 and <= 2 or gpu", "3")));
  EXPECT_THAT(take("cpu"), ElementsAre(Names("level", "gpu", "cpu")));
  EXPECT_EQ(level, 2);
}

TEST_F(SchemaTest, WritesValuesIntoTheirVariables) {
  EXPECT_THAT(errors("data: {num_workers: 3, order: quasi_random, fields: [image, label]}\n"
                     "lr: {lr: 1.7, milestones: [1, 2.5]}\n"
                     "model: {blurpool: on, arch: rn50, params: {width: 2}}\n"),
              IsEmpty());
  EXPECT_EQ(options_.workers, 3);
  EXPECT_EQ(options_.order, "quasi_random");
  EXPECT_EQ(options_.lr, 1.7);
  EXPECT_THAT(options_.milestones, ElementsAre(1, 2.5));
  EXPECT_THAT(options_.fields, ElementsAre("image", "label"));
  EXPECT_TRUE(options_.blurpool);
  EXPECT_EQ(options_.arch, "rn50");
  EXPECT_EQ(options_.params.find("width")->scalar, "2");
  EXPECT_EQ(options_.momentum, 0.9);
}

TEST_F(SchemaTest, TheChoicesAreListedOnce) {
  const std::vector<std::string> far = errors("data: {order: sorted}\n");
  ASSERT_EQ(far.size(), 1U);
  EXPECT_THAT(far, ElementsAre(Names("data.order", "random", "quasi_random", "'sorted'")));
  EXPECT_EQ(far[0].find("quasi_random"), far[0].rfind("quasi_random")) << far[0];
  EXPECT_THAT(errors("data: {order: quasirandom}\n"),
              ElementsAre(Names("data.order", "'quasirandom'", "'quasi_random'")));
}

TEST_F(SchemaTest, ReadsNumbersAsThePublishedFilesWriteThem) {
  EXPECT_THAT(errors("lr: {lr: 5e-5}\ndata: {num_workers: 012}\nvalidation: {lr_tta: true}\n"),
              IsEmpty());
  EXPECT_EQ(options_.lr, 5e-5);
  EXPECT_EQ(options_.workers, 12);
  EXPECT_EQ(options_.lr_tta, 1);
  EXPECT_THAT(errors("lr: {lr: +.5, momentum: 0}\nvalidation: {lr_tta: False}\n"), IsEmpty());
  EXPECT_EQ(options_.lr, 0.5);
  EXPECT_EQ(options_.momentum, 0);
  EXPECT_EQ(options_.lr_tta, 0);
}

TEST_F(SchemaTest, ReadsEverySpellingOfABool) {
  for (const char* yes : {"true", "True", "yes", "on", "1"}) {
    options_.blurpool = false;
    EXPECT_THAT(override_errors("model.blurpool", yes), IsEmpty());
    EXPECT_TRUE(options_.blurpool) << yes;
  }
  for (const char* no : {"false", "FALSE", "no", "off", "0"}) {
    options_.blurpool = true;
    EXPECT_THAT(override_errors("model.blurpool", no), IsEmpty());
    EXPECT_FALSE(options_.blurpool) << no;
  }
}

TEST_F(SchemaTest, RefusesWrongTypesAndKeepsTheValue) {
  EXPECT_THAT(errors("data:\n  num_workers: six\n"),
              ElementsAre(Names("r.yaml:2:16", "data.num_workers", "integer", "'six'")));
  for (const char* text :
       {"1.5", "1e3", "", "[1]", "{a: 1}", "0x10", "99999999999999999999", "+-5", "--5", "1 2"}) {
    EXPECT_THAT(override_errors("data.num_workers", text),
                ElementsAre(Names("data.num_workers", "integer")))
        << text;
  }
  for (const char* text : {"fast", "nan", "inf", "1e999", "", "1,5", "[0.5]", "0.5 "}) {
    EXPECT_THAT(override_errors("lr.lr", text), ElementsAre(Names("lr.lr", "number"))) << text;
  }
  for (const char* text : {"2", "maybe", "", "[true]"}) {
    EXPECT_THAT(override_errors("model.blurpool", text),
                ElementsAre(Names("model.blurpool", "true", "false")))
        << text;
  }
  EXPECT_THAT(override_errors("model.arch", "[a]"),
              ElementsAre(Names("model.arch", "text", "[a]")));
  EXPECT_THAT(override_errors("lr.milestones", "30"),
              ElementsAre(Names("lr.milestones", "list", "'30'")));
  EXPECT_THAT(override_errors("lr.milestones", "[1, x]"),
              ElementsAre(Names("lr.milestones", "[1, x]")));
  EXPECT_THAT(override_errors("data.fields", "[[a]]"),
              ElementsAre(Names("data.fields", "list", "[[a]]")));
  EXPECT_THAT(errors("model: {arch: ~}\n"), ElementsAre(Names("model.arch", "text")));
  EXPECT_EQ(options_.workers, 12);
  EXPECT_EQ(options_.lr, 0.5);
  EXPECT_EQ(options_.arch, "rn18");
  EXPECT_THAT(options_.milestones, ElementsAre(30, 60));
}

TEST_F(SchemaTest, RefusesValuesOutOfRange) {
  EXPECT_THAT(override_errors("data.num_workers", "0"),
              ElementsAre(Names("command line", "data.num_workers", ">= 1", "'0'")));
  EXPECT_THAT(override_errors("data.num_workers", "1025"),
              ElementsAre(Names("data.num_workers", "<= 1024", "'1025'")));
  EXPECT_THAT(override_errors("lr.lr", "0"), ElementsAre(Names("lr.lr", "> 0", "'0'")));
  EXPECT_THAT(override_errors("lr.momentum", "1"), ElementsAre(Names("lr.momentum", "< 1", "'1'")));
  EXPECT_THAT(override_errors("lr.momentum", "-0.1"),
              ElementsAre(Names("lr.momentum", ">= 0", "'-0.1'")));
  EXPECT_THAT(override_errors("data.num_workers", "1024"), IsEmpty());
  EXPECT_THAT(override_errors("data.num_workers", "1"), IsEmpty());
}

TEST_F(SchemaTest, HintsAtAMisspeltChoice) {
  EXPECT_THAT(override_errors("data.order", "quasi_randon"),
              ElementsAre(Names("command line", "data.order", "random, quasi_random",
                                "'quasi_randon'", "'quasi_random'")));
}

TEST_F(SchemaTest, HintsAtAMisspeltKeyOrSection) {
  EXPECT_THAT(errors("data: {num_worker: 3}\n"),
              ElementsAre(Names("r.yaml:1:8", "data.num_worker", "'data.num_workers'")));
  EXPECT_THAT(errors("dat: {num_workers: 3}\n"), ElementsAre(Names("r.yaml:1:1", "dat", "'data'")));
  EXPECT_THAT(override_errors("dta.num_workers", "3"),
              ElementsAre(Names("command line", "--dta.num_workers", "'data.num_workers'")));
  EXPECT_THAT(
      override_errors("unheard.of", "3"),
      ElementsAre(Names("command line", "--unheard.of", "data, lr, model, training, validation")));
}

TEST_F(SchemaTest, RefusesASectionThatIsNoMap) {
  EXPECT_THAT(errors("data: 3\n"), ElementsAre(Names("r.yaml:1:7", "data", "map", "'3'")));
  EXPECT_THAT(errors("data:\nlr: ~\n"), IsEmpty());
}

TEST_F(SchemaTest, WarnsOfDeadKeys) {
  EXPECT_THAT(errors("training: {bn_wd: 1}\n"), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(Names("r.yaml:1:19", "training.bn_wd")));
  EXPECT_THAT(override_errors("training.bn_wd", "1"), IsEmpty());
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(SchemaTest, ReportsEverythingAtOnceInOrder) {
  EXPECT_THAT(
      errors("data:\n  num_workers: 0\n  order: x\nlr:\n  lr: fast\n  lr: 2\n  what: 1\n"),
      ElementsAre(Names("r.yaml:6:3", "lr.lr", "line 5"), Names("r.yaml:2:16", "data.num_workers"),
                  Names("r.yaml:3:10", "data.order"), Names("r.yaml:5:7", "lr.lr"),
                  Names("r.yaml:7:3", "lr.what")));
}

TEST_F(SchemaTest, LetsTheLaterCallWinAndKnowsWhereValuesCameFrom) {
  EXPECT_EQ(schema_.origin("lr.lr").text(), "default");
  EXPECT_FALSE(schema_.given("lr.lr"));
  EXPECT_THAT(errors("lr: {lr: 1}\n"), IsEmpty());
  EXPECT_EQ(schema_.origin("lr.lr").text(), "r.yaml:1:10");
  EXPECT_THAT(override_errors("lr.lr", "2"), IsEmpty());
  EXPECT_EQ(options_.lr, 2);
  EXPECT_EQ(schema_.origin("lr.lr").text(), "command line");
  EXPECT_TRUE(schema_.given("lr.lr"));
  EXPECT_THROW(static_cast<void>(schema_.origin("no.such")), std::logic_error);
}

TEST_F(SchemaTest, PutsThePrefixBeforeTheOptionsOfOnePart) {
  double decay = 0.999;
  Schema part;
  part.add("decay", &decay, "Share kept.").min(0).max(1);
  Diagnostics diagnostics;
  const ConfigNode map = parse_yaml("decay: 2\nspeed: 1\n", "r.yaml", diagnostics);
  part.apply(map, diagnostics, "methods[1].ema");
  part.apply(ConfigNode{}, diagnostics, "methods[1].ema");
  part.apply(ConfigNode::from_text("5"), diagnostics, "methods[1].ema");
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("methods[1].ema.decay", "<= 1", "'2'"),
                                                Names("methods[1].ema.speed", "decay"),
                                                Names("methods[1].ema", "map", "'5'")));
}

TEST(Schema, ReportsRequiredKeysThatAreMissing) {
  std::string train;
  std::string val;
  Schema schema;
  schema.add("data.train_dataset", &train, "The .beton file.").required();
  schema.add("data.val_dataset", &val, "The other.").required();
  Diagnostics diagnostics;
  schema.apply(parse_yaml("data: {val_dataset: x}\n", "r.yaml", diagnostics), diagnostics);
  schema.check_required({"r.yaml", 0, 0}, diagnostics);
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("r.yaml", "data.train_dataset", ".beton")));
}

TEST(Schema, AWrongValueUnderAnotherNameLeavesTheKeyGiven) {
  std::int64_t samples = 0;
  Schema schema;
  schema.add("data.samples", &samples, "Their number.").required();
  schema.add_alias("data.size", "data.samples");
  Diagnostics diagnostics;
  schema.apply(parse_yaml("data: {samples: 3}\n", "r.yaml", diagnostics), diagnostics);
  schema.apply({"data.size", ConfigNode::from_text("many", {"command line", 0, 0})}, diagnostics);
  schema.check_required({"r.yaml", 0, 0}, diagnostics);
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("command line", "integer", "'many'")));
  EXPECT_EQ(samples, 3);
}

TEST(Schema, RefusesAKeyTwice) {
  double x = 0;
  Schema schema;
  schema.add("a.b", &x, "");
  EXPECT_THROW(schema.add("a.b", &x, ""), std::logic_error);
}

TEST_F(SchemaTest, GivesTheResolvedValues) {
  EXPECT_THAT(errors("lr: {lr: 2}\nmodel: {params: {width: 2, name: x, flags: [true, 1.5, ~]}}\n"),
              IsEmpty());
  const auto values = schema_.values();
  EXPECT_EQ(values.at("lr.lr"), 2.0);
  EXPECT_EQ(values.at("data.num_workers"), 12);
  EXPECT_EQ(values.at("model.blurpool"), false);
  EXPECT_EQ(values.at("lr.milestones").dump(), "[30.0,60.0]");
  EXPECT_EQ(values.at("model.params").dump(), R"({"width":2,"name":"x","flags":[true,1.5,null]})");
  EXPECT_FALSE(values.contains("training.bn_wd"));
  EXPECT_EQ(values.begin().key(), "data.num_workers");
}

TEST_F(SchemaTest, HelpsWithTypesDefaultsAndChoices) {
  const std::string help = schema_.help();
  EXPECT_THAT(help, Names("--data.num_workers", "integer", "default 12"));
  EXPECT_THAT(help, Names("random|quasi_random", "default \"random\""));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("bn_wd")));
}

}  // namespace
}  // namespace precast
