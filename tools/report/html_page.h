#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// A cell of a table; text is escaped.
struct HtmlCell {
  std::string text{};
  /// Not empty: a link to this, relative to the page.
  std::string link{};
  bool bold = false;
};

struct HtmlTable {
  struct Column {
    std::string name{};
    /// Set flush right, in digits of one width.
    bool numeric = false;
  };
  std::vector<Column> columns{};
  /// Rows shorter than the columns are filled up.
  std::vector<std::vector<HtmlCell>> rows{};
};

/// One of the large figures at the head of a page: the answer, before the charts.
struct HtmlFigure {
  std::string value{};
  std::string label{};
  /// Small, below; may be empty.
  std::string note{};
};

/// A page in precast's look: one column of sections, light or dark as the viewer's system is.
/// Self-contained: its content security policy forbids to load anything, and there is no script.
/// Used by `precast report`; other pages (grids, reproduced tables) are built from the same pieces:
///
///   HtmlPage page("title", "what this is, in a line");
///   page.figures({{"71.4 %", "top-1"}});
///   page.section("Learning");
///   page.charts({line_chart_svg(...), scatter_chart_svg(...)});
///   page.table({...});
///   write_file("page.html", page.text());
///
/// All text is escaped; only charts go in as they are. Content before the first section() stands
/// below the head.
class HtmlPage {
 public:
  explicit HtmlPage(std::string title, std::string subtitle = {});

  void figures(const std::vector<HtmlFigure>& figures);
  /// Starts a section; the one before ends, and so do details that are open.
  void section(const std::string& title);
  void paragraph(const std::string& text);
  /// A remark that the reader must not miss: a run that is cut off, a log that is damaged.
  void notice(const std::string& text);
  void table(const HtmlTable& table);
  /// Charts side by side where the window has room. @param svgs what the functions of
  /// tools/report/chart return.
  void charts(const std::vector<std::string>& svgs);
  /// What follows, until end_details(), is folded under this line.
  void begin_details(const std::string& summary);
  void end_details();

  /// The whole document. The page can be added to afterwards.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string closing() const;

  std::string title_;
  std::string subtitle_;
  std::string body_;
  bool in_section_ = false;
  int open_details_ = 0;
};

}  // namespace precast::tools
